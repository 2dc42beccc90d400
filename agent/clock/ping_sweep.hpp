// Epochs of pings with many nodes, a few at a time: what waits for others' pings makes a round trip, and so the bound, longer. Who sends them and who reads
// the answers is the caller: the leader for its own connections, a relay for its nodes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "agent/clock/ping.hpp"

namespace ringside::agent {

/// @thread one caller
class PingSweep {
public:
    using SteadyTime = std::chrono::steady_clock::time_point;
    struct Sent {
        std::uint64_t id;
        schema::Nanoseconds at;
    };
    /// Sends one ping.
    using Send = std::function<Sent(std::size_t target)>;
    /// Has the pings of one, when its epoch is over; none where it did not answer.
    using Ended = std::function<void(std::size_t target, const std::vector<PingSample>& samples)>;

    /// One that does not answer a ping for so long has ended.
    static constexpr std::chrono::milliseconds kPingLimit{1000};

    PingSweep(std::vector<std::size_t> targets, Send send, Ended ended)
        : targets_(std::move(targets)), send_(std::move(send)), ended_(std::move(ended)) {}

    /// Begins as many epochs as may be under way, ends those of nodes that are silent.
    void go_on(SteadyTime now);
    /// An answer.
    /// @return false where it is none to a ping of this sweep
    bool take(std::size_t target, std::uint64_t id, schema::Nanoseconds node_ns,
              schema::Nanoseconds received);
    bool over() const { return next_ == targets_.size() && under_way_.empty(); }

private:
    struct Epoch {
        std::size_t target;
        PingEpoch pings;
        Sent sent{};
        SteadyTime pinged{};
    };
    void ping(Epoch& epoch, SteadyTime now);

    const std::vector<std::size_t> targets_;
    const Send send_;
    const Ended ended_;
    std::size_t next_ = 0;
    std::vector<Epoch> under_way_;
};

}  // namespace ringside::agent
