// What a leader elsewhere has this agent pass on: messages to nodes that it does not reach itself, and theirs to it, unread. A thread with links of its own, so
// that neither side waits for the server's loop or that one for them. The leader stays who it is: its pings keep the nodes' leases, it is told of each fault.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <zmq.hpp>

#include "agent/clock/ping_sweep.hpp"
#include "agent/control/messages.hpp"
#include "agent/control/node_service.hpp"
#include "agent/control/outbox.hpp"
#include "agent/control/peer_links.hpp"
#include "agent/control/unsent_letters.hpp"

namespace ringside::agent {

/// What was passed back to the leader and is not on the network yet. Where that is much, its nodes are not read: the server would drop what the leader does
/// not take.
/// @thread thread-safe
class RelayFlow {
public:
    /// @return what a letter holds until it is written or dropped
    static std::shared_ptr<void> hold(const std::shared_ptr<RelayFlow>& flow, std::size_t bytes);
    bool has_room() const;
    /// Raised when there is more room, and by who has something for the relay.
    const Event& event() const { return event_; }

private:
    // Each stands alone, and is looked at again at each event: relaxed throughout.
    std::atomic<std::size_t> letters_{0};
    std::atomic<std::size_t> bytes_{0};
    Event event_;
};

/// @thread main thread (the server's loop), but for its own
class Relay {
public:
    /// @param endpoints  checked, none twice
    Relay(NodeService& service, zmq::context_t& context, Outbox& outbox, std::string leader,
          std::vector<std::string> endpoints);
    /// Waits for the thread; up to two seconds where it was connecting.
    ~Relay();
    Relay(const Relay&) = delete;
    Relay& operator=(const Relay&) = delete;

    /// Connects, and answers `id` when that is done. Once.
    /// @errors Refused: there can be no thread
    schema::Result<void> begin(std::uint64_t id);
    const std::string& leader() const { return leader_; }
    std::size_t size() const { return endpoints_.size(); }

    /// A RelayRequest or a RelayClocksRequest of the leader's.
    /// @return false where too much waits
    bool take(fbs::MessageT message);
    void end();
    /// Whether the thread has nothing more to do.
    bool over() const { return over_.load(std::memory_order_acquire); }

private:
    void run(std::uint64_t opened_by);
    void open(std::uint64_t id);
    void handle(fbs::MessageT& message);
    void pass_on(fbs::RelayRequestT& request);
    void begin_clocks(std::uint64_t id);
    void pass_back();
    bool is_own_ping(const PeerLinks::Frame& frame, Nanoseconds received);
    void go_on_with_clocks();
    void refuse_clocks();
    void tell(MessageBytes bytes);

    NodeService& service_;
    Outbox& outbox_;
    const std::string leader_;
    const std::vector<std::string> endpoints_;
    std::atomic<bool> ending_{false};
    std::atomic<bool> over_{false};
    const std::shared_ptr<RelayFlow> flow_ = std::make_shared<RelayFlow>();
    std::mutex mutex_;
    std::vector<fbs::MessageT> inbox_;
    std::size_t inbox_bytes_ = 0;
    // The thread's.
    UnsentBytes unsent_;  ///< to nodes
    PeerLinks links_;
    std::vector<bool> connected_;
    std::optional<PingSweep> sweep_;
    std::uint64_t sweep_for_ = 0;  // the request's id
    std::uint64_t last_ping_ = 0;
    fbs::RelayClocksReplyT clocks_;
    std::thread thread_;
};

}  // namespace ringside::agent
