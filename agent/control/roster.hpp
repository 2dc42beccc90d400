// The nodes of one capture, as the leader sees them, and the way it speaks to all of them at once: a round sends a request to every peer,
// runs the own node's part beside it, and ends when each has answered or was given up. While it waits it pings, so that a node that is
// only slow is told from one that is gone, and peers know that their leader lives.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <zmq.hpp>

#include "agent/clock/model.hpp"
#include "agent/clock/ping.hpp"
#include "agent/control/node_service.hpp"
#include "agent/control/outbox.hpp"
#include "agent/control/peer_links.hpp"
#include "agent/correlate/halves.hpp"

namespace ringside::agent {

/// One node of a capture. The first is the leader's own.
struct NodeState {
    std::string endpoint;
    std::size_t peer = kOwn;  ///< its place among the peers
    std::string name;
    std::string host;
    bool taking_part = true;
    bool reached = false;    ///< it has answered at all
    bool not_meant = false;  ///< nobody whom the trace means is there
    bool holding = false;    ///< a capture was asked of it, and not yet stopped
    schema::Error error;     ///< why it takes no part
    std::uint64_t capture_id = 0;
    bool capturing = false;  ///< when it was first asked
    bool counts_iterations = false;
    fbs::IterationsReplyT iterations;  ///< as it said last

    std::vector<PingSample> before, during, after;
    ClockCorrection rough;    ///< from the first epoch: good enough to agree on an instant
    Nanoseconds begun_by_ns;  ///< leader_ns when it had said that it has begun
    std::optional<fbs::StopReplyT> stopped;
    std::vector<Half> halves;

    static constexpr std::size_t kOwn = ~std::size_t{0};
    bool own() const { return peer == kOwn; }

private:
    friend class Roster;
    std::uint64_t waiting_for_ = 0;  // the id of a request under way
    std::uint64_t ping_id_ = 0;      // of a ping under way
    Nanoseconds ping_sent_;
    std::optional<PingEpoch> epoch_;  // under way
    SteadyTime pinged_;
    SteadyTime heard_;
};

/// One exchange with all nodes that take part.
struct Round {
    std::string action;  ///< for errors: "prepare the capture"
    /// What to send to a peer; empty bytes: nothing.
    std::function<MessageBytes(NodeState& node, std::uint64_t id)> request;
    std::function<void(NodeState& node, fbs::MessageT& reply)> reply;
    /// The own node's part, run on a thread of its own; an error makes it take no part. May be empty.
    std::function<schema::Result<void>(NodeState& own)> own;
    /// Whoever does not answer it in time, or by an error, takes part all the same, as long as it answers pings; `reply` is not called for it.
    bool may_fail = false;
    Milliseconds limit{10'000};  ///< for the whole round of a few nodes; each adds a little
    std::size_t at_once =
        ~std::size_t{0};          ///< so many nodes are asked before the first has answered
    Milliseconds silence{5'000};  ///< a peer that answers no ping for so long is gone
};

/// @thread one: the leader's
class Roster {
public:
    /// @param tick    called some ten times a second while waiting
    /// @param nudge   ends a wait_until early
    Roster(NodeService& own, zmq::context_t& context, std::function<void()> tick,
           const Event& nudge);

    std::vector<NodeState>& nodes() { return nodes_; }
    const std::vector<NodeState>& nodes() const { return nodes_; }
    NodeState& own() { return nodes_.front(); }
    const NodeState& own() const { return nodes_.front(); }

    /// Connects to the peers and asks each who it is. Those that don't answer take no part.
    void meet(const std::vector<std::string>& peers);
    void run(const Round& round);
    /// One epoch of pings with each peer, appended to `samples` of it; a few peers at a time: what waits for others' pings makes a round trip, and so the bound,
    /// longer.
    void ping_all(std::vector<PingSample> NodeState::*samples);
    /// Waits for a time of the leader's clock, pinging now and then.
    /// @return false where the nudge came first
    bool wait_until(Nanoseconds leader_ns);

    void drop(NodeState& node, schema::Error error);
    /// The node's own time of an instant of the leader's.
    Nanoseconds node_time_of(const NodeState& node, Nanoseconds leader_ns) const;
    Nanoseconds leader_now() const { return own_.engine().node_now(); }
    std::int64_t worst_rtt_ns() const;

private:
    void add_peers(const std::vector<std::string>& peers);
    void refuse_double_names();
    void ask(NodeState& node, const Round& round);
    void ask_more(const Round& round);
    void no_longer_wait(NodeState& node);
    void pump(SteadyTime until, const Event* wake, const Round* round);
    void keep_in_touch(const Round* round);
    Milliseconds touch() const;
    void send_ping(NodeState& node);
    void read(const Round* round);
    void take(NodeState& node, fbs::MessageT& message, Nanoseconds received, const Round* round);
    void give_up_late(const Round& round);
    void take_ping(NodeState& node, const PingSample& sample);
    void end_epoch(NodeState& node, std::vector<PingSample> NodeState::*samples);

    NodeService& own_;
    PeerLinks links_;
    std::function<void()> tick_;
    const Event& nudge_;
    std::vector<NodeState> nodes_;
    std::uint64_t last_id_ = 0;
    std::size_t asked_ = 0;    // nodes that had their turn in the round
    std::size_t waiting_ = 0;  // of those: whose answer is to come
    bool measuring_ = false;   // nothing but the epochs' pings is sent
    SteadyTime last_touch_;
    SteadyTime last_look_;
};

}  // namespace ringside::agent
