#include "agent/control/messages.hpp"

#include <algorithm>
#include <cstdint>

#include "schema/aligned.hpp"
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
/// A table and the word that leads to it. More tables than that are some of them told again and again.
constexpr std::size_t kLeastTableBytes = 8, kSlackTables = 16;

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
           short_text(request.name()) && short_text(request.iterations_of()) &&
           short_text(request.asker());
}

bool in_limits(const fbs::PrepareRequest& request) {
    return chooses_in_limits(request) && short_text(request.name()) &&
           short_text(request.iterations_of()) && short_text(request.asker());
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

std::size_t text_of(const flatbuffers::String* text) {
    return size_of(text);
}

std::size_t text_of(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* texts) {
    std::size_t sum = 0;
    for (flatbuffers::uoffset_t i = 0; i < size_of(texts); ++i) sum += text_of(texts->Get(i));
    return sum;
}

std::size_t text_of(const fbs::ProcessResult& process) {
    return text_of(process.workers()) + text_of(process.command()) + text_of(process.reason()) +
           text_of(process.executable());
}

std::size_t text_of(const fbs::ProcessStatus& status) {
    const fbs::Process* process = status.process();
    if (process == nullptr) return text_of(status.reason());
    return text_of(status.reason()) + text_of(process->worker_name()) +
           text_of(process->executable()) + text_of(process->command_line()) +
           text_of(process->job()) + text_of(process->end_reason());
}

/// Who writes a message writes each of its texts by itself. Many tables that are one and the same, each with all of its texts, would come to more than there is
/// memory.
template <class Reply>
bool texts_fit(const Reply& reply, std::size_t message_bytes) {
    std::size_t sum = 0;
    for (flatbuffers::uoffset_t i = 0; i < size_of(reply.processes()); ++i) {
        sum += text_of(*reply.processes()->Get(i));
        if (sum > message_bytes) return false;
    }
    return true;
}

bool is_aligned(const fbs::ProcessesReply& reply) {
    for (flatbuffers::uoffset_t i = 0; i < size_of(reply.processes()); ++i) {
        if (!schema::is_aligned_process(reply.processes()->Get(i)->process())) return false;
    }
    return true;
}

bool in_limits(const fbs::PeersReply& reply) {
    const auto* const noted = reply.noted();
    const auto* const nodes = reply.nodes();
    if (size_of(noted) > kMostPeers || size_of(nodes) > kMostPeers) return false;
    return (noted == nullptr || std::all_of(noted->begin(), noted->end(),
                                            [](const fbs::NotedAgent* agent) {
                                                return short_text(agent->member()) &&
                                                       short_text(agent->node()) &&
                                                       short_text(agent->endpoint());
                                            })) &&
           (nodes == nullptr ||
            std::all_of(nodes->begin(), nodes->end(), [](const fbs::SlurmNode* node) {
                return short_text(node->member()) && short_text(node->id()) &&
                       short_text(node->name()) && short_text(node->address());
            }));
}

bool in_limits(const fbs::FetchReply& reply) {
    return size_of(reply.data()) <= kMostPartBytes;
}

bool in_limits(const flatbuffers::Vector<flatbuffers::Offset<fbs::RelayFault>>* faults) {
    if (faults == nullptr) return true;
    return faults->size() <= kMostRelayed &&
           std::all_of(faults->begin(), faults->end(), [](const fbs::RelayFault* fault) {
               return size_of(fault->message()) <= kMostErrorBytes;
           });
}

/// Each message is there once, as each text is (texts_fit).
bool messages_fit(const flatbuffers::Vector<flatbuffers::Offset<fbs::Relayed>>* messages,
                  std::size_t bytes) {
    std::size_t sum = 0;
    for (flatbuffers::uoffset_t i = 0; i < size_of(messages); ++i) {
        const fbs::Relayed* message = messages->Get(i);
        sum += size_of(message->body()) + size_of(message->nodes()) * sizeof(std::uint32_t);
        if (sum > bytes || size_of(message->nodes()) > kMostRelayed) return false;
    }
    return true;
}

bool in_limits(const fbs::RelayClocksReply& reply) {
    if (size_of(reply.nodes()) > kMostRelayed) return false;
    if (reply.nodes() == nullptr) return true;
    return std::all_of(reply.nodes()->begin(), reply.nodes()->end(),
                       [](const fbs::RelayClock* node) {
                           return size_of(node->samples()) <= kMostClockSamples &&
                                  schema::is_aligned(node->samples());
                       });
}

/// @param bytes  of all of it
bool in_limits(const fbs::Message& message, std::size_t bytes) {
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
            return in_limits(*message.content_as_StopReply()) &&
                   texts_fit(*message.content_as_StopReply(), bytes);
        case fbs::Content::ProcessesReply:
            return texts_fit(*message.content_as_ProcessesReply(), bytes) &&
                   is_aligned(*message.content_as_ProcessesReply());
        case fbs::Content::PeersReply:
            return in_limits(*message.content_as_PeersReply());
        case fbs::Content::FetchRequest:
            return short_text(message.content_as_FetchRequest()->path());
        case fbs::Content::FetchReply:
            return in_limits(*message.content_as_FetchReply());
        case fbs::Content::RelayOpenRequest:
            return short_texts(message.content_as_RelayOpenRequest()->endpoints(), kMostRelayed) &&
                   short_text(message.content_as_RelayOpenRequest()->asker());
        case fbs::Content::RelayOpenReply:
            return in_limits(message.content_as_RelayOpenReply()->faults());
        case fbs::Content::RelayRequest:
            return messages_fit(message.content_as_RelayRequest()->messages(), bytes);
        case fbs::Content::RelayReply:
            return messages_fit(message.content_as_RelayReply()->messages(), bytes) &&
                   in_limits(message.content_as_RelayReply()->faults()) &&
                   short_text(message.content_as_RelayReply()->over());
        case fbs::Content::RelayClocksReply:
            return in_limits(*message.content_as_RelayClocksReply());
        default:
            return true;
    }
}

bool is_whole(const std::uint8_t* data, std::size_t size) {
    const auto tables = static_cast<flatbuffers::uoffset_t>(size / kLeastTableBytes + kSlackTables);
    flatbuffers::Verifier verifier(data, size, kMostDepth, std::min(tables, kMostTables));
    return fbs::VerifyMessageBuffer(verifier);
}

schema::Result<const fbs::Message*> verified(const std::uint8_t* data, std::size_t size) {
    if (!is_whole(data, size)) return bad("its bytes fail the verifier");
    const fbs::Message* message = fbs::GetMessage(data);
    if (message->version() == 0) return bad("it bears no version");
    if (message->content_type() == fbs::Content::NONE ||
        message->content_type() > fbs::Content::MAX || message->content() == nullptr) {
        return bad("version " + std::to_string(message->version()) + ", kind " +
                   std::to_string(static_cast<int>(message->content_type())) +
                   " is none that this version knows (" + std::to_string(schema::kProtocolVersion) +
                   ")");
    }
    if (!in_limits(*message, size)) return bad("a list or a text in it is too long");
    return message;
}

/// @param use  called with the message, whose bytes live as long
template <class Value>
schema::Result<Value> with_verified(std::span<const std::uint8_t> bytes,
                                    Value (*use)(const fbs::Message&)) {
    if (bytes.size() < 8) return bad("it has " + std::to_string(bytes.size()) + " bytes");
    if (bytes.size() > kMostReplyBytes) return bad("it is larger than any message");
    // libzmq hands out frames from the middle of its receive buffer; FlatBuffers wants them aligned.
    MessageBytes copy;
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % 16 != 0) {
        copy.assign(bytes.begin(), bytes.end());
        bytes = copy;
    }
    const auto message = verified(bytes.data(), bytes.size());
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

schema::Result<fbs::MessageT> unpack_message(std::span<const std::uint8_t> bytes) {
    return with_verified<fbs::MessageT>(bytes, [](const fbs::Message& message) {
        fbs::MessageT native;
        message.UnPackTo(&native);
        return native;
    });
}

schema::Result<fbs::Content> kind_of(std::span<const std::uint8_t> bytes) {
    return with_verified<fbs::Content>(
        bytes, [](const fbs::Message& message) { return message.content_type(); });
}

std::uint64_t id_of_refused(std::span<const std::uint8_t> bytes) {
    if (bytes.size() < 8) return 0;
    const MessageBytes copy(bytes.begin(), bytes.end());
    return is_whole(copy.data(), copy.size()) ? fbs::GetMessage(copy.data())->id() : 0;
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
