#include "agent/correlate/sides.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace ringside::agent {
namespace {

constexpr std::int64_t kAlways = std::numeric_limits<std::int64_t>::min() / 2;
constexpr std::int64_t kFarBoundNs = std::numeric_limits<std::int64_t>::max() / 2;

/// Whether what this process did was being recorded, had it done anything.
bool was_recorded(const ProcessOutcome& process) {
    switch (process.verdict) {
        case Verdict::kCaptured:
        case Verdict::kExited:
        case Verdict::kKilled:
        case Verdict::kHung:
            return true;
        default:
            return process.start_delay_ns >= 0;  // it attached, and had nothing to record
    }
}

}  // namespace

Sides::Sides(std::span<const NodeCapture> nodes, const PairBound& bounds) : bounds_(bounds) {
    for (std::uint32_t n = 0; n < nodes.size(); ++n) {
        const NodeClock clock = nodes[n].node_clock();
        const auto leader_ns = [&](std::uint64_t ticks) {
            return clock.leader_ns(Ticks{ticks}).value;
        };
        recordings_.push_back(
            {nodes[n].start_ticks == 0 ? kAlways : leader_ns(nodes[n].start_ticks),
             nodes[n].stop_ticks == 0 ? kNever : leader_ns(nodes[n].stop_ticks)});
        bool workers = false;
        for (const ProcessOutcome& outcome : nodes[n].processes) {
            const std::uint32_t number = process(n, outcome.index);
            if (outcome.fate != Fate::kRunning)
                processes_[number].end_ns = leader_ns(outcome.end_ticks);
            for (const std::string& name : outcome.workers) {
                Worker& named = workers_[worker(name)];
                named.processes.push_back(
                    {number, nodes[n].halves_complete && was_recorded(outcome)});
                named.nodes.add(n, bounds_.of(n));
            }
            workers |= !outcome.workers.empty();
        }
        if (workers) nodes_with_workers_.add(n, bounds_.of(n));
    }
}

std::uint32_t Sides::process(std::uint32_t node, std::uint32_t index) {
    const auto [entry, added] = process_numbers_.try_emplace(
        std::uint64_t{node} << 32 | index, static_cast<std::uint32_t>(processes_.size()));
    if (added) processes_.push_back({node, index, {}, {}});
    return entry->second;
}

std::uint32_t Sides::worker(std::string_view name) {
    const auto [entry, added] =
        worker_numbers_.try_emplace(std::string(name), static_cast<std::uint32_t>(workers_.size()));
    if (added) workers_.push_back({is_rank_name(name), {}, {}});
    return entry->second;
}

/// Frameworks number a worker's calls as they are made. So a request that bears a number no smaller than that of a recorded call was
/// made after it, inside the capture, although its client's half is missing.
void Sides::count_call(const OpenHalf& client) {
    if (names_rank(client.peer)) return;
    auto& least = processes_[client.process].least_wire_ids;
    auto after = least.upper_bound(client.begin_ns);
    if (after != least.begin() && std::prev(after)->second <= client.wire_id) return;
    while (after != least.end() && after->second >= client.wire_id) after = least.erase(after);
    least.insert_or_assign(client.begin_ns, client.wire_id);
}

void Sides::Widest::add(std::uint32_t of, std::int64_t bound_ns) {
    if (first_ns >= 0 && of == node) return;
    if (bound_ns > first_ns) {
        second_ns = std::exchange(first_ns, bound_ns);
        node = of;
    } else {
        second_ns = std::max(second_ns, bound_ns);
    }
}

std::int64_t Sides::Widest::from(std::uint32_t other, const PairBound& bounds) const {
    const std::int64_t widest = node == other ? second_ns : first_ns;
    return widest < 0 ? 0 : bounds.of(other) + widest;
}

std::int64_t Sides::wait_ns(std::uint32_t node, std::uint32_t worker) const {
    const Worker& named = workers_[worker];
    const Widest& nodes = named.processes.empty() ? nodes_with_workers_ : named.nodes;
    return later(nodes.from(node, bounds_), kViolationGraceNs);
}

RpcState Sides::state_of(const OpenHalf& half) const {
    const std::vector<Peer>& peers = workers_[half.peer].processes;
    if (names_rank(half.peer))
        return half.server ? received_state(half, peers) : sent_state(half, peers);
    const bool died = std::any_of(peers.begin(), peers.end(),
                                  [&](const Peer& peer) { return died_before(half, peer); });
    if (died) return RpcState::Orphan;
    return half.server ? server_state(half, peers) : client_state(half, peers);
}

/// Whether the other side's process was gone before this half was over.
bool Sides::died_before(const OpenHalf& half, const Peer& peer) const {
    const Process& process = processes_[peer.process];
    if (!process.end_ns) return false;
    if (!half.ended()) return true;
    return *process.end_ns <=
           half.end_ns + std::min(bounds_.between(half.node, process.node), kFarBoundNs);
}

RpcState Sides::client_state(const OpenHalf& half, const std::vector<Peer>& peers) const {
    if (half.status == schema::RpcStatus::kPeerGone && half.ended()) return RpcState::Orphan;
    // Still open when the capture stopped: the request may be on its way. A caller that died is no longer waiting.
    if (!half.ended() && !processes_[half.process].end_ns) return RpcState::Cut;
    const std::int64_t over_ns = half.ended() ? half.end_ns : *processes_[half.process].end_ns;
    const bool recorded = std::any_of(peers.begin(), peers.end(), [&](const Peer& peer) {
        return began_recorded(half, peer) && is_recorded_at(over_ns, half, peer);
    });
    return recorded ? RpcState::Orphan : RpcState::Cut;
}

/// Whether the other side was being recorded when this half began.
bool Sides::began_recorded(const OpenHalf& half, const Peer& peer) const {
    const std::uint32_t node = processes_[peer.process].node;
    return peer.recorded &&
           half.begin_ns - bounds_.between(half.node, node) >= recordings_[node].start_ns;
}

/// Whether the other side's recording was not over at this time of the half's node: one may be stopped before the others.
bool Sides::is_recorded_at(std::int64_t ns, const OpenHalf& half, const Peer& peer) const {
    const std::uint32_t node = processes_[peer.process].node;
    return peer.recorded &&
           later(ns, bounds_.between(half.node, node)) <= recordings_[node].stop_ns;
}

/// A message that nobody was seen to receive lies where it was sent to, or is on its way, for as long as somebody there may still ask for it.
RpcState Sides::sent_state(const OpenHalf& half, const std::vector<Peer>& peers) const {
    if (half.status == schema::RpcStatus::kPeerGone && half.ended()) return RpcState::Orphan;
    // A rank's children have its rank, too: all of them must be gone.
    const bool never =
        !peers.empty() && std::all_of(peers.begin(), peers.end(),
                                      [&](const Peer& peer) { return never_received(half, peer); });
    return never ? RpcState::Orphan : RpcState::Cut;
}

/// Whether this process ended without having received the message: before it was sent, or under our eyes.
bool Sides::never_received(const OpenHalf& half, const Peer& peer) const {
    const Process& process = processes_[peer.process];
    if (!process.end_ns) return false;
    if (later(*process.end_ns, bounds_.between(half.node, process.node)) <= half.begin_ns)
        return true;
    return began_recorded(half, peer) && *process.end_ns <= recordings_[process.node].stop_ns;
}

/// A message may lie for as long as its receiver likes: only who was recorded from the first instruction on has surely sent it inside the capture.
RpcState Sides::received_state(const OpenHalf& half, const std::vector<Peer>& peers) const {
    const bool seen = std::any_of(peers.begin(), peers.end(), [&](const Peer& peer) {
        return recordings_[processes_[peer.process].node].start_ns == kAlways &&
               is_recorded_at(half.ended() ? half.end_ns : half.begin_ns, half, peer);
    });
    return seen ? RpcState::Orphan : RpcState::Cut;
}

RpcState Sides::server_state(const OpenHalf& half, const std::vector<Peer>& peers) const {
    for (const Peer& peer : peers) {
        if (is_recorded_at(half.begin_ns, half, peer) && made_inside(half, peer))
            return RpcState::Orphan;
    }
    return RpcState::Cut;
}

/// Whether the call behind a server's half was made while its caller was being recorded.
bool Sides::made_inside(const OpenHalf& half, const Peer& peer) const {
    const Process& process = processes_[peer.process];
    if (recordings_[process.node].start_ns == kAlways) return true;
    const std::int64_t latest = half.begin_ns + bounds_.between(half.node, process.node);
    const auto after = process.least_wire_ids.upper_bound(latest);
    if (after == process.least_wire_ids.begin()) return false;
    return std::prev(after)->second <= half.wire_id;
}

}  // namespace ringside::agent
