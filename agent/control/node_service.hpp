// What a leader may ask of a node, over the engine: the checks on names, the pages of halves, and an answer to a question that is asked
// again. The server calls it for a leader elsewhere, the leader calls it for its own node.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "agent/capture/engine.hpp"
#include "agent/control/convert.hpp"
#include "agent/control/key.hpp"
#include "agent/control/messages.hpp"
#include "agent/control/rendezvous.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

/// A capture's default name.
std::string capture_name(std::uint64_t capture_id);

/// @thread thread-safe
class NodeService {
public:
    NodeService(Engine& engine, AgentIdentity identity);

    Engine& engine() const { return engine_; }
    const AgentIdentity& identity() const { return identity_; }
    /// What peers over tcp are reached with: those of its own endpoints, the last that it was given first.
    std::vector<Key> keys() const;
    void take_key(const Key& key);
    /// By what other hosts find this agent.
    void take_note(const NotedAgent& note);

    /// @errors what tell_known says
    schema::Result<fbs::PeersReplyT> peers(const fbs::PeersRequestT& request) const;

    /// @errors Usage: the name; what Engine::prepare says
    schema::Result<fbs::PrepareReplyT> prepare(const fbs::PrepareRequestT& request);
    schema::Result<void> begin(const fbs::BeginRequestT& request);
    /// Of the capture that ended last too: nobody there is under way any more.
    /// @errors what Engine::iterations says
    schema::Result<fbs::IterationsReplyT> iterations(const fbs::IterationsRequestT& request);
    /// Asked again about the capture that was stopped last, it answers again.
    schema::Result<fbs::StopReplyT> stop(const fbs::StopRequestT& request);
    /// Ends a capture now, before anybody has asked for its end; whoever asks for a later one then is told.
    /// @param why  "its leader had not been heard of for 15000 ms"
    /// @errors what Engine::stop says
    schema::Result<void> end_early(std::uint64_t capture_id, std::string why);
    /// @return a packed HalvesReply
    /// @errors NothingMatched: that capture is not the last one
    schema::Result<MessageBytes> halves(std::uint64_t id, const fbs::HalvesRequestT& request) const;
    /// All of them, for the leader's own node.
    std::vector<Half> all_halves(std::uint64_t capture_id) const;

    /// @errors what Engine::arm says; Usage: bounds that are none
    schema::Result<fbs::ArmReplyT> arm(const fbs::ArmRequestT& request);
    /// @errors what Engine::disarm says
    schema::Result<fbs::DisarmReplyT> disarm();

    /// Word on at once; ended by a TraceRequest with `finish`, or with the agent.
    schema::Result<void> capture_from_start(CaptureRequest request);
    /// The running capture if it was begun so, else 0.
    std::uint64_t from_start_id() const;

private:
    /// The capture that was stopped last.
    struct Ended {
        CaptureReport report;
        Nanoseconds at_node_ns;  ///< its last instant
        std::string early;       ///< why it ended before somebody asked for it; empty: it did not
        Halves halves;           ///< never null
    };
    schema::Result<void> end(const fbs::StopRequestT& request, std::string early);
    fbs::StopReplyT told(const fbs::StopRequestT& request);
    bool is_last(std::uint64_t capture_id) const;
    Halves halves_of(std::uint64_t capture_id) const;
    schema::Result<void> check_instant(const char* action, std::int64_t node_ns) const;

    Engine& engine_;
    const AgentIdentity identity_;
    std::mutex stopping_;  // held through a stop: who asks meanwhile gets its answer
    mutable std::mutex mutex_;
    std::vector<Key> keys_;
    NotedAgent note_;
    std::uint64_t from_start_ = 0;
    std::optional<Ended> last_;
};

}  // namespace ringside::agent
