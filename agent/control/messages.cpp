#include "agent/control/messages.hpp"

#include <algorithm>
#include <cstdint>

#include "agent/control/message_kinds.hpp"
#include "agent/control/message_walk.hpp"
#include "schema/frame.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

/// Each is 8 bytes of a message at least: its own, and those that lead to it.
constexpr std::size_t kLeastTableBytes = 8, kSlackTables = 16;
constexpr flatbuffers::uoffset_t kMostTables = 2'000'000;
/// A page of halves tells each name once: `pack_halves` shares those that are not long.
constexpr std::size_t kHalvesShare = 16;

Error bad(const std::string& cause) {
    return {ErrorCode::kInput, "read a control message: " + cause +
                                   "; is the other side Ringside, and of this version?"};
}

bool is_whole(std::span<const std::uint8_t> bytes) {
    const auto tables =
        static_cast<flatbuffers::uoffset_t>(bytes.size() / kLeastTableBytes + kSlackTables);
    flatbuffers::Verifier verifier(bytes.data(), bytes.size(), kMostDepth,
                                   std::min(tables, kMostTables));
    return fbs::VerifyMessageBuffer(verifier);
}

std::size_t most_told(fbs::Content kind, std::size_t bytes) {
    return kind == fbs::Content::HalvesReply ? std::min(kHalvesShare * bytes, kMostReplyBytes)
                                             : bytes;
}

bool says(Speaker speaker, fbs::Content kind) {
    const MessageRole role = role_of(kind);
    return speaker == Speaker::kAnybody ||
           role ==
               (speaker == Speaker::kClient ? MessageRole::kRequest : MessageRole::kNodesAnswer);
}

Error not_said_by(Speaker speaker, fbs::Content kind) {
    const std::string what =
        "message of kind " + std::to_string(static_cast<int>(kind)) + " is no ";
    return speaker == Speaker::kClient
               ? Error{ErrorCode::kUsage,
                       what +
                           "request that this agent takes; is it newer? install the same version"}
               : bad(what + "answer to a leader");
}

/// From what costs nothing to what costs most: each step bounds what the next one may do.
schema::Result<const fbs::Message*> verified(std::span<const std::uint8_t> bytes, Speaker speaker) {
    const auto head = head_of(bytes);
    if (!head) return bad("it has no beginning of one");
    if (head->version == 0) return bad("it bears no version");
    if (head->kind == fbs::Content::NONE || head->kind > fbs::Content::MAX) {
        return bad("version " + std::to_string(head->version) + ", kind " +
                   std::to_string(static_cast<int>(head->kind)) +
                   " is none that this version knows (" + std::to_string(schema::kProtocolVersion) +
                   ")");
    }
    if (!says(speaker, head->kind)) return not_said_by(speaker, head->kind);
    if (!tells_at_most(bytes, most_told(head->kind, bytes.size())))
        return bad("its bytes are damaged, or tell one thing again and again");
    if (!is_whole(bytes)) return bad("its bytes fail the verifier");
    const fbs::Message* message = fbs::GetMessage(bytes.data());
    if (message->content() == nullptr) return bad("it has no content");
    if (!in_limits(*message)) return bad("a list or a text in it is too long");
    return message;
}

/// @param use  called with the message, whose bytes live as long
template <class Value>
schema::Result<Value> with_verified(std::span<const std::uint8_t> bytes, Speaker speaker,
                                    Value (*use)(const fbs::Message&)) {
    if (bytes.size() < 8) return bad("it has " + std::to_string(bytes.size()) + " bytes");
    if (bytes.size() > kMostReplyBytes) return bad("it is larger than any message");
    // libzmq hands out frames from the middle of its receive buffer; FlatBuffers wants them aligned.
    MessageBytes copy;
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % 16 != 0) {
        copy.assign(bytes.begin(), bytes.end());
        bytes = copy;
    }
    const auto message = verified(bytes, speaker);
    if (!message) return message.error();
    return use(**message);
}

}  // namespace

MessageBytes pack_message(std::uint64_t id, fbs::ContentUnion content) {
    fbs::MessageT message;
    message.version = schema::kProtocolVersion;
    message.id = id;
    message.content = std::move(content);
    flatbuffers::FlatBufferBuilder builder(512);
    fbs::FinishMessageBuffer(builder, fbs::Message::Pack(builder, &message));
    return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

schema::Result<fbs::MessageT> unpack_message(std::span<const std::uint8_t> bytes, Speaker speaker) {
    return with_verified<fbs::MessageT>(bytes, speaker, [](const fbs::Message& message) {
        fbs::MessageT native;
        message.UnPackTo(&native);
        return native;
    });
}

schema::Result<fbs::Content> kind_of(std::span<const std::uint8_t> bytes, Speaker speaker) {
    return with_verified<fbs::Content>(
        bytes, speaker, [](const fbs::Message& message) { return message.content_type(); });
}

std::uint64_t id_of_refused(std::span<const std::uint8_t> bytes) {
    const auto head = head_of(bytes);
    return head ? head->id : 0;
}

fbs::ErrorReplyT error_reply(const Error& error) {
    fbs::ErrorReplyT reply;
    reply.code = static_cast<fbs::Code>(error.code);
    reply.message = error.message.substr(0, kMostErrorBytes);
    return reply;
}

Error error_of(const fbs::ErrorReplyT& reply) {
    switch (reply.code) {
        case fbs::Code::Usage:
            return {ErrorCode::kUsage, reply.message};
        case fbs::Code::NothingMatched:
            return {ErrorCode::kNothingMatched, reply.message};
        case fbs::Code::NoAgent:
            return {ErrorCode::kNoAgent, reply.message};
        case fbs::Code::RefusedCode:
            return {ErrorCode::kRefused, reply.message};
        case fbs::Code::Input:
            return {ErrorCode::kInput, reply.message};
        default:
            return {ErrorCode::kInternal, reply.message};
    }
}

std::optional<Error> unread_by(const std::string& endpoint, fbs::MessageT& message) {
    const auto* error = message.id == 0 ? content_as<fbs::ErrorReplyT>(message) : nullptr;
    if (error == nullptr) return std::nullopt;
    return Error{ErrorCode::kRefused,
                 "ask " + endpoint + ": its agent can't read the question; it is older, install " +
                     "the same version there (it says: " + error->message + ")"};
}

}  // namespace ringside::agent
