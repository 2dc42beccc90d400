// The nodes of one capture, as the leader sees them, and the way it speaks to all of them at once: a round sends a request to every peer,
// runs the own node's part beside it, and ends when each has answered or was given up. While it waits it pings, so that a node that is
// only slow is told from one that is gone, and peers know that their leader lives.
//
// Of more peers than a few hundred most are reached through others of them, their relays (roster_tree.cpp): each message to such a node goes in an envelope to its
// relay, and all the rest is as with any other.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <zmq.hpp>

#include "agent/clock/model.hpp"
#include "agent/clock/ping_sweep.hpp"
#include "agent/control/node_service.hpp"
#include "agent/control/outbox.hpp"
#include "agent/control/peer_links.hpp"
#include "agent/correlate/halves.hpp"

namespace ringside::agent {

/// One node of a capture. The first is the leader's own.
struct NodeState {
    std::string endpoint;
    std::size_t link = kNone;   ///< its place among the leader's connections; none: it has no such
    std::size_t relay = kNone;  ///< the node through which it is reached; none: it is not so
    std::vector<std::size_t> relayed;  ///< the nodes that are reached through this one
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

    /// Those before and after are by the clock of who took them: the leader, or this node's relay.
    std::vector<PingSample> before, during, after;
    ClockCorrection rough;    ///< from the first epoch: good enough to agree on an instant
    Nanoseconds begun_by_ns;  ///< leader_ns when it had said that it has begun
    std::optional<fbs::StopReplyT> stopped;
    std::vector<Half> halves;

    static constexpr std::size_t kNone = ~std::size_t{0};
    bool own() const { return own_; }
    /// False while it is not known yet by which way it will be reached.
    bool has_way() const { return link != kNone || relay != kNone; }

private:
    friend class Roster;
    bool own_ = false;
    std::size_t relays_at_most_ = 0;  // as it says
    std::uint32_t number_ = 0;        // among its relay's nodes
    fbs::RelayRequestT bundle_;       // what is to go to this relay
    std::size_t bundle_bytes_ = 0;
    std::uint64_t waiting_for_ = 0;  // the id of a request under way
    std::uint64_t ping_id_ = 0;      // of a ping under way
    Nanoseconds ping_sent_;
    SteadyTime heard_;
};

/// When a leader leads through others, and how.
struct TreeShape {
    std::size_t beyond = kMostDirectPeers;  ///< peers; of so many each has a connection of its own
    std::size_t nodes_a_relay = 0;          ///< 0: about as many as there are relays
    std::string asker;                      ///< who is said to be asking
};

/// A node's clock against the leader's, from all its pings and, where it has a relay, that one's.
/// @param nodes  all of them
ClockMeasurement clock_of(const std::vector<NodeState>& nodes, const NodeState& node,
                          NodeInterval valid);

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
    /// It is not the nodes that are asked but the relays, as such. Who does not answer is none any more.
    bool of_relays = false;
    Milliseconds limit{10'000};  ///< for the whole round of a few nodes; each adds a little
    std::size_t at_once =
        ~std::size_t{0};          ///< so many nodes are asked before the first has answered
    Milliseconds silence{5'000};  ///< a peer that answers no ping for so long is gone
};

/// @thread one: the leader's
class Roster {
public:
    /// @param tick    called some ten times a second while waiting
    /// @param nudge   ends a wait_until early, and a wait for peers to connect to
    Roster(NodeService& own, zmq::context_t& context, std::function<void()> tick,
           const Event& nudge);

    std::vector<NodeState>& nodes() { return nodes_; }
    const std::vector<NodeState>& nodes() const { return nodes_; }
    NodeState& own() { return nodes_.front(); }
    const NodeState& own() const { return nodes_.front(); }

    /// Connects to the peers and asks each who it is. Those that don't answer take no part.
    void meet(const std::vector<std::string>& peers, const TreeShape& shape = {});
    /// Tells the relays that it is over; the last thing. Without, they find out after a while.
    void leave();
    void run(const Round& round);
    /// One epoch of pings with each peer, appended to `samples` of it. Relays measure their nodes, all of them at the same time.
    void ping_all(std::vector<PingSample> NodeState::*samples);
    /// Waits for a time of the leader's clock, pinging now and then.
    /// @return false where the nudge came first
    bool wait_until(Nanoseconds leader_ns);

    /// Whether any node takes part.
    bool anybody() const;
    void drop(NodeState& node, schema::Error error);
    /// The node's own time of an instant of the leader's.
    Nanoseconds node_time_of(const NodeState& node, Nanoseconds leader_ns) const;
    Nanoseconds leader_now() const { return own_.engine().node_now(); }
    std::int64_t worst_rtt_ns() const;

private:
    void add_peers(const std::vector<std::string>& peers);
    void connect_to(const std::vector<std::size_t>& nodes);
    void ask_who();
    void refuse_double_names();
    void ask(NodeState& node, const Round& round);
    void ask_more(const Round& round);
    void no_longer_wait(NodeState& node);
    void pump(SteadyTime until, const Event* wake, const Round* round);
    void keep_in_touch(const Round* round);
    void look_for_silent(const Round& round, SteadyTime now);
    Milliseconds touch() const;
    schema::Result<void> send(NodeState& node, const MessageBytes& bytes);
    void send_ping(NodeState& node);
    void read(const Round* round);
    void take(NodeState& node, fbs::MessageT& message, Nanoseconds received, const Round* round);
    void give_up_late(const Round& round);
    void lose(NodeState& node, const schema::Error& error);
    static schema::Error gone(const NodeState& node, const std::string& action, Milliseconds after);
    void ping_links(std::vector<PingSample> NodeState::*samples);
    void end_epoch(NodeState& node, const std::vector<PingSample>& epoch,
                   std::vector<PingSample> NodeState::*samples);
    std::size_t index_of(const NodeState& node) const {
        return static_cast<std::size_t>(&node - nodes_.data());
    }

    // The tree.
    struct Group {
        std::vector<std::size_t> nodes;  ///< that have no way yet
        std::size_t candidate = NodeState::kNone;
    };
    std::vector<Group> groups(const TreeShape& shape) const;
    std::vector<std::size_t> find_relays(const TreeShape& shape);
    void open_relays(std::vector<Group>& groups, const std::string& asker);
    void take_opened(Group& group, const fbs::RelayOpenReplyT& reply);
    void bundle(NodeState& relay, std::uint32_t number, const MessageBytes& bytes);
    void send_bundle(NodeState& relay);
    void send_bundles();
    void take_passed(NodeState& relay, fbs::RelayReplyT& reply, Nanoseconds received,
                     const Round* round);
    void lose_relayed(NodeState& relay, const schema::Error& error);
    void measure_through_relays(std::vector<PingSample> NodeState::*samples);

    NodeService& own_;
    PeerLinks links_;
    std::function<void()> tick_;
    const Event& nudge_;
    std::vector<NodeState> nodes_;
    std::vector<std::size_t> linked_;  // the node of each connection
    std::vector<std::size_t> relays_;  // nodes that have become one
    std::uint64_t last_id_ = 0;
    std::uint64_t round_id_ = 0;  // the same for all: what goes to many through a relay goes once
    std::size_t asked_ = 0;       // nodes that had their turn in the round
    std::size_t waiting_ = 0;     // of those: whose answer is to come
    std::optional<PingSweep> sweep_;  // nothing but its pings is sent
    SteadyTime last_touch_;
    SteadyTime last_look_;

    static constexpr Milliseconds kTick{100};
};

}  // namespace ringside::agent
