// The roster's part that measures the clocks of the nodes that this leader has a connection to; of the others' see roster_tree.cpp.
#include <chrono>
#include <utility>

#include "agent/control/roster.hpp"

namespace ringside::agent {

using schema::Error;
using Clock = std::chrono::steady_clock;

void Roster::end_epoch(NodeState& node, const std::vector<PingSample>& epoch,
                       std::vector<PingSample> NodeState::*samples) {
    if (epoch.empty()) {
        // Before the capture a node without a clock is no use; after it its dump still is.
        const Error silent = gone(node, "ping", PingSweep::kPingLimit);
        lose_relayed(node, silent);
        if (samples == &NodeState::before && node.taking_part) drop(node, silent);
        return;
    }
    auto& kept = node.*samples;
    kept.insert(kept.end(), epoch.begin(), epoch.end());
    if (samples != &NodeState::before) return;
    const Nanoseconds now = epoch.back().node_ns;
    node.rough = clock_of(nodes_, node, {now, now}).correction;
}

void Roster::ping_all(std::vector<PingSample> NodeState::*samples) {
    // What the relays measure lies between what is measured of them: there their own correction is at its best.
    if (samples == &NodeState::after) measure_through_relays(samples);
    ping_links(samples);
    if (samples != &NodeState::after) measure_through_relays(samples);
}

/// Those that this leader has a connection to.
void Roster::ping_links(std::vector<PingSample> NodeState::*samples) {
    std::vector<std::size_t> targets;
    for (const std::size_t index : linked_) {
        if (nodes_[index].taking_part || !nodes_[index].relayed.empty()) targets.push_back(index);
    }
    const auto send = [this](std::size_t index) {
        const std::uint64_t id = ++last_id_;
        const MessageBytes bytes = pack(id, fbs::PingRequestT{});
        const Nanoseconds now = leader_now();
        (void)links_.send(nodes_[index].link, bytes);
        return PingSweep::Sent{id, now};
    };
    const auto ended = [this, samples](std::size_t index, const std::vector<PingSample>& epoch) {
        end_epoch(nodes_[index], epoch, samples);
    };
    sweep_.emplace(std::move(targets), send, ended);
    for (sweep_->go_on(Clock::now()); !sweep_->over(); sweep_->go_on(Clock::now()))
        pump(Clock::now() + kTick, nullptr, nullptr);
    sweep_.reset();
}

}  // namespace ringside::agent
