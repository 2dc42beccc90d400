#include "agent/clock/ping_sweep.hpp"

#include <algorithm>

namespace ringside::agent {
namespace {

constexpr std::size_t kPingedAtOnce = 8;

}  // namespace

void PingSweep::ping(Epoch& epoch, SteadyTime now) {
    epoch.pinged = now;
    epoch.sent = send_(epoch.target);
}

void PingSweep::go_on(SteadyTime now) {
    std::erase_if(under_way_, [&](const Epoch& epoch) {
        if (!epoch.pings.done() && now - epoch.pinged <= kPingLimit) return false;
        ended_(epoch.target, epoch.pings.samples());
        return true;
    });
    while (next_ < targets_.size() && under_way_.size() < kPingedAtOnce)
        ping(under_way_.emplace_back(Epoch{targets_[next_++], PingEpoch(PingPlan{})}), now);
}

bool PingSweep::take(std::size_t target, std::uint64_t id, schema::Nanoseconds node_ns,
                     schema::Nanoseconds received) {
    const auto epoch = std::find_if(under_way_.begin(), under_way_.end(), [&](const Epoch& each) {
        return each.target == target && each.sent.id == id;
    });
    if (epoch == under_way_.end()) return false;
    epoch->pings.add({epoch->sent.at, node_ns, received});
    if (!epoch->pings.done()) ping(*epoch, std::chrono::steady_clock::now());
    return true;
}

}  // namespace ringside::agent
