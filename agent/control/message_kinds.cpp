#include "agent/control/message_kinds.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "agent/control/messages.hpp"
#include "schema/aligned.hpp"
#include "schema/ids.hpp"

namespace ringside::agent {
namespace {

using Texts = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>;

constexpr std::size_t kMostTextBytes = 4096;
constexpr std::size_t kMostExecutables = 64;
constexpr std::size_t kMostWorkers = 256;
/// In an envelope: a message to each node, some times over.
constexpr std::size_t kMostInEnvelope = 16 * kMostRelayed;

template <class Vector>
std::size_t size_of(const Vector* vector) {
    return vector == nullptr ? 0 : vector->size();
}

bool short_text(const flatbuffers::String* text) {
    return size_of(text) <= kMostTextBytes;
}

/// No more than so many, and each of them as it should be.
template <class Vector, class Check>
bool all_of(const Vector* vector, std::size_t most, Check check) {
    return vector == nullptr ||
           (vector->size() <= most && std::all_of(vector->begin(), vector->end(), check));
}

bool short_texts(const Texts* texts, std::size_t most) {
    return all_of(texts, most, short_text);
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

bool in_limits(const fbs::HalvesReply& reply) {
    return all_of(reply.halves(), kMostHalvesInPage, [](const fbs::Half* half) {
        return short_text(half->self()) && short_text(half->peer());
    });
}

bool in_limits(const fbs::StopReply& reply) {
    return all_of(reply.processes(), kMostPids, [](const fbs::ProcessResult* process) {
        return short_texts(process->workers(), kMostWorkers) && short_text(process->command()) &&
               short_text(process->reason()) && short_text(process->executable()) &&
               all_of(process->sources(), schema::kSourceCount,
                      [](const fbs::Source* source) { return short_text(source->reason()); }) &&
               (process->iterations() == nullptr || short_text(process->iterations()->name()));
    });
}

bool in_limits(const fbs::ProcessesReply& reply) {
    return all_of(reply.processes(), SIZE_MAX, [](const fbs::ProcessStatus* status) {
        return schema::is_aligned_process(status->process());
    });
}

bool in_limits(const fbs::PeersReply& reply) {
    return all_of(reply.noted(), kMostPeers,
                  [](const fbs::NotedAgent* agent) {
                      return short_text(agent->member()) && short_text(agent->node()) &&
                             short_text(agent->endpoint());
                  }) &&
           all_of(reply.nodes(), kMostPeers, [](const fbs::SlurmNode* node) {
               return short_text(node->member()) && short_text(node->id()) &&
                      short_text(node->name()) && short_text(node->address());
           });
}

bool in_limits(const flatbuffers::Vector<flatbuffers::Offset<fbs::RelayFault>>* faults) {
    return all_of(faults, kMostRelayed, [](const fbs::RelayFault* fault) {
        return size_of(fault->message()) <= kMostErrorBytes;
    });
}

bool in_limits(const flatbuffers::Vector<flatbuffers::Offset<fbs::Relayed>>* messages) {
    return all_of(messages, kMostInEnvelope, [](const fbs::Relayed* message) {
        return size_of(message->nodes()) <= kMostRelayed;
    });
}

bool in_limits(const fbs::RelayClocksReply& reply) {
    return all_of(reply.nodes(), kMostRelayed, [](const fbs::RelayClock* node) {
        return size_of(node->samples()) <= kMostClockSamples && schema::is_aligned(node->samples());
    });
}

}  // namespace

// No default in these two: the compiler asks for a new kind's line.
MessageRole role_of(fbs::Content kind) {
    using fbs::Content;
    switch (kind) {
        case Content::StatusRequest:
        case Content::ProcessesRequest:
        case Content::PingRequest:
        case Content::PrepareRequest:
        case Content::BeginRequest:
        case Content::StopRequest:
        case Content::HalvesRequest:
        case Content::TraceRequest:
        case Content::CancelRequest:
        case Content::ShutdownRequest:
        case Content::ArmRequest:
        case Content::DisarmRequest:
        case Content::IterationsRequest:
        case Content::PeersRequest:
        case Content::FetchRequest:
        case Content::RelayOpenRequest:
        case Content::RelayRequest:
        case Content::RelayClocksRequest:
            return MessageRole::kRequest;
        case Content::StatusReply:
        case Content::PingReply:
        case Content::PrepareReply:
        case Content::BeginReply:
        case Content::StopReply:
        case Content::HalvesReply:
        case Content::IterationsReply:
        case Content::RelayOpenReply:
        case Content::RelayReply:
        case Content::RelayClocksReply:
        case Content::ErrorReply:
            return MessageRole::kNodesAnswer;
        case Content::ProcessesReply:
        case Content::Progress:
        case Content::TraceReply:
        case Content::CancelReply:
        case Content::ShutdownReply:
        case Content::ArmReply:
        case Content::DisarmReply:
        case Content::PeersReply:
        case Content::FetchReply:
        case Content::NONE:
            break;
    }
    return MessageRole::kAnswer;
}

bool in_limits(const fbs::Message& message) {
    using fbs::Content;
    switch (message.content_type()) {
        case Content::TraceRequest:
            return in_limits(*message.content_as_TraceRequest());
        case Content::PrepareRequest:
            return in_limits(*message.content_as_PrepareRequest());
        case Content::ArmRequest:
            return size_of(message.content_as_ArmRequest()->pids()) <= kMostPids;
        case Content::HalvesReply:
            return in_limits(*message.content_as_HalvesReply());
        case Content::StopReply:
            return in_limits(*message.content_as_StopReply());
        case Content::ProcessesReply:
            return in_limits(*message.content_as_ProcessesReply());
        case Content::PeersRequest:
            return short_text(message.content_as_PeersRequest()->job());
        case Content::PeersReply:
            return in_limits(*message.content_as_PeersReply());
        case Content::FetchRequest:
            return short_text(message.content_as_FetchRequest()->path());
        case Content::FetchReply:
            return size_of(message.content_as_FetchReply()->data()) <= kMostPartBytes;
        case Content::RelayOpenRequest:
            return short_texts(message.content_as_RelayOpenRequest()->endpoints(), kMostRelayed) &&
                   short_text(message.content_as_RelayOpenRequest()->asker());
        case Content::RelayOpenReply:
            return in_limits(message.content_as_RelayOpenReply()->faults());
        case Content::RelayRequest:
            return in_limits(message.content_as_RelayRequest()->messages());
        case Content::RelayReply:
            return in_limits(message.content_as_RelayReply()->messages()) &&
                   in_limits(message.content_as_RelayReply()->faults()) &&
                   short_text(message.content_as_RelayReply()->over());
        case Content::RelayClocksReply:
            return in_limits(*message.content_as_RelayClocksReply());
        // Nothing in them is longer than the message (tells_at_most), and nobody keeps it.
        case Content::StatusRequest:
        case Content::StatusReply:
        case Content::ProcessesRequest:
        case Content::PingRequest:
        case Content::PingReply:
        case Content::PrepareReply:
        case Content::BeginRequest:
        case Content::BeginReply:
        case Content::StopRequest:
        case Content::HalvesRequest:
        case Content::Progress:
        case Content::TraceReply:
        case Content::CancelRequest:
        case Content::CancelReply:
        case Content::ShutdownRequest:
        case Content::ShutdownReply:
        case Content::ErrorReply:
        case Content::ArmReply:
        case Content::DisarmRequest:
        case Content::DisarmReply:
        case Content::IterationsRequest:
        case Content::IterationsReply:
        case Content::RelayClocksRequest:
            return true;
        case Content::NONE:
            break;
    }
    return false;
}

}  // namespace ringside::agent
