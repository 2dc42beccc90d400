#include "agent/control/messages.hpp"

#include <algorithm>
#include <cstdint>

#include "schema/frame.hpp"
#include "schema/ids.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

constexpr std::size_t kMostTextBytes = 4096;
constexpr std::size_t kMostExecutables = 64;
constexpr std::size_t kMostErrorBytes = 8192;
constexpr flatbuffers::uoffset_t kMostDepth = 16;
constexpr flatbuffers::uoffset_t kMostTables = 1'000'000;

Error bad(const std::string& cause) {
    return {ErrorCode::kInput, "read a control message: " + cause +
                                   "; is the other side Ringside, and of this version?"};
}

template <class Vector>
std::size_t size_of(const Vector* vector) {
    return vector == nullptr ? 0 : vector->size();
}

bool short_text(const flatbuffers::String* text) {
    return size_of(text) <= kMostTextBytes;
}

/// A vector's strings may all be one and the same long one: taken apart they would fill the memory that the frame's bound protects.
bool short_texts(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* texts,
                 std::size_t most) {
    if (texts == nullptr) return true;
    if (texts->size() > most) return false;
    return std::all_of(texts->begin(), texts->end(), short_text);
}

template <class Request>
bool chooses_in_limits(const Request& request) {
    return size_of(request.pids()) <= kMostPids && size_of(request.ranks()) <= kMostPids &&
           short_texts(request.executables(), kMostExecutables);
}

bool in_limits(const fbs::TraceRequest& request) {
    return short_texts(request.peers(), kMostPeers) && chooses_in_limits(request) &&
           short_text(request.name()) && short_text(request.iterations_of());
}

bool in_limits(const fbs::PrepareRequest& request) {
    return chooses_in_limits(request) && short_text(request.name()) &&
           short_text(request.iterations_of());
}

bool in_limits(const fbs::ArmRequest& request) {
    return size_of(request.pids()) <= kMostPids;
}

bool short_sources(const flatbuffers::Vector<flatbuffers::Offset<fbs::Source>>* sources) {
    if (sources == nullptr) return true;
    return sources->size() <= schema::kSourceCount &&
           std::all_of(sources->begin(), sources->end(),
                       [](const fbs::Source* source) { return short_text(source->reason()); });
}

bool in_limits(const fbs::HalvesReply& reply) {
    if (size_of(reply.halves()) > kMostHalvesInPage) return false;
    if (reply.halves() == nullptr) return true;
    return std::all_of(reply.halves()->begin(), reply.halves()->end(), [](const fbs::Half* half) {
        return short_text(half->self()) && short_text(half->peer());
    });
}

bool in_limits(const fbs::StopReply& reply) {
    if (size_of(reply.processes()) > kMostPids) return false;
    if (reply.processes() == nullptr) return true;
    return std::all_of(
        reply.processes()->begin(), reply.processes()->end(),
        [](const fbs::ProcessResult* process) {
            return short_texts(process->workers(), 256) && short_text(process->command()) &&
                   short_text(process->reason()) && short_text(process->executable()) &&
                   short_sources(process->sources()) &&
                   (process->iterations() == nullptr || short_text(process->iterations()->name()));
        });
}

bool in_limits(const fbs::Message& message) {
    switch (message.content_type()) {
        case fbs::Content::TraceRequest:
            return in_limits(*message.content_as_TraceRequest());
        case fbs::Content::PrepareRequest:
            return in_limits(*message.content_as_PrepareRequest());
        case fbs::Content::ArmRequest:
            return in_limits(*message.content_as_ArmRequest());
        case fbs::Content::HalvesReply:
            return in_limits(*message.content_as_HalvesReply());
        case fbs::Content::StopReply:
            return in_limits(*message.content_as_StopReply());
        default:
            return true;
    }
}

schema::Result<fbs::MessageT> unpack_aligned(const std::uint8_t* data, std::size_t size) {
    flatbuffers::Verifier verifier(data, size, kMostDepth, kMostTables);
    if (!fbs::VerifyMessageBuffer(verifier)) return bad("its bytes fail the verifier");
    const fbs::Message* message = fbs::GetMessage(data);
    if (message->version() == 0) return bad("it bears no version");
    if (message->content_type() == fbs::Content::NONE ||
        message->content_type() > fbs::Content::MAX || message->content() == nullptr) {
        return bad("version " + std::to_string(message->version()) + ", kind " +
                   std::to_string(static_cast<int>(message->content_type())) +
                   " is none that this version knows (" + std::to_string(schema::kProtocolVersion) +
                   ")");
    }
    if (!in_limits(*message)) return bad("a list or a text in it is too long");
    fbs::MessageT native;
    message->UnPackTo(&native);
    return native;
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

schema::Result<fbs::MessageT> unpack_message(std::span<const std::uint8_t> bytes) {
    if (bytes.size() < 8) return bad("it has " + std::to_string(bytes.size()) + " bytes");
    if (bytes.size() > kMostReplyBytes) return bad("it is larger than any message");
    // libzmq hands out frames from the middle of its receive buffer; FlatBuffers wants them aligned.
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % 16 == 0)
        return unpack_aligned(bytes.data(), bytes.size());
    const MessageBytes copy(bytes.begin(), bytes.end());
    return unpack_aligned(copy.data(), copy.size());
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

}  // namespace ringside::agent
