#include "agent/correlate/sides.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace ringside::agent {
namespace {

constexpr std::int64_t kAlways = std::numeric_limits<std::int64_t>::min() / 2;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 2;

std::uint64_t process_key(std::uint32_t node, std::uint32_t process) {
    return std::uint64_t{node} << 32 | process;
}

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

Sides::Sides(std::span<const NodeCapture> nodes, std::span<const TimedHalf> halves,
             const PairBound& bounds)
    : nodes_(nodes), halves_(halves), bounds_(bounds) {
    for (std::uint32_t n = 0; n < nodes.size(); ++n) {
        const NodeClock clock = nodes[n].node_clock();
        start_ns_.push_back(nodes[n].start_ticks == 0
                                ? kAlways
                                : clock.leader_ns(Ticks{nodes[n].start_ticks}).value);
        for (const ProcessOutcome& process : nodes[n].processes) {
            std::optional<std::int64_t> end_ns;
            if (process.fate != Fate::kRunning)
                end_ns = clock.leader_ns(Ticks{process.end_ticks}).value;
            ends_[process_key(n, process.index)] = end_ns;
            for (const std::string& worker : process.workers)
                workers_[worker].push_back(
                    {n, process.index, nodes[n].halves_complete && was_recorded(process), end_ns});
        }
    }
}

const Half& Sides::source(const TimedHalf& half) const {
    return nodes_[half.at.node].halves[half.at.half];
}

/// Frameworks number a worker's calls as they are made. So a request that bears a number no smaller than that of a recorded call was
/// made after it, inside the capture, although its client's half is missing.
void Sides::count_calls() const {
    if (std::exchange(counted_, true)) return;
    for (const TimedHalf& half : halves_) {
        if (half.server) continue;
        calls_[process_key(half.at.node, half.process)].push_back(
            {half.begin_ns, source(half).wire_id});
    }
    for (auto& [key, calls] : calls_) {
        std::sort(calls.begin(), calls.end(),
                  [](const Counted& a, const Counted& b) { return a.begin_ns < b.begin_ns; });
        std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
        for (Counted& call : calls) {
            least = std::min(least, call.least_wire_id);
            call.least_wire_id = least;
        }
    }
}

std::optional<std::int64_t> Sides::process_end_ns(std::uint32_t node, std::uint32_t process) const {
    const auto found = ends_.find(process_key(node, process));
    return found == ends_.end() ? std::nullopt : found->second;
}

RpcState Sides::state_of(const TimedHalf& half) const {
    static const std::vector<Peer> kNobody;
    const auto found = workers_.find(std::string_view(source(half).peer));
    const std::vector<Peer>& peers = found == workers_.end() ? kNobody : found->second;
    const bool died = std::any_of(peers.begin(), peers.end(),
                                  [&](const Peer& peer) { return died_before(half, peer); });
    if (died) return RpcState::kOrphan;
    return half.server ? server_state(half, peers) : client_state(half, peers);
}

/// Whether the other side's process was gone before this half was over.
bool Sides::died_before(const TimedHalf& half, const Peer& peer) const {
    if (!peer.end_ns) return false;
    if (!half.ended) return true;
    return *peer.end_ns <= half.end_ns + std::min(bounds_.between(half.at.node, peer.node), kNever);
}

RpcState Sides::client_state(const TimedHalf& half, const std::vector<Peer>& peers) const {
    if (source(half).status == schema::RpcStatus::kPeerGone && half.ended) return RpcState::kOrphan;
    // Still open when the capture stopped: the request may be on its way. A caller that died is no longer waiting.
    if (!half.ended && !process_end_ns(half.at.node, half.process)) return RpcState::kCut;
    for (const Peer& peer : peers) {
        const std::int64_t bound = bounds_.between(half.at.node, peer.node);
        if (peer.recorded && half.begin_ns - bound >= start_ns_[peer.node])
            return RpcState::kOrphan;
    }
    return RpcState::kCut;
}

RpcState Sides::server_state(const TimedHalf& half, const std::vector<Peer>& peers) const {
    for (const Peer& peer : peers) {
        if (peer.recorded && made_inside(half, peer)) return RpcState::kOrphan;
    }
    return RpcState::kCut;
}

/// Whether the call behind a server's half was made while its caller was being recorded.
bool Sides::made_inside(const TimedHalf& half, const Peer& peer) const {
    if (start_ns_[peer.node] == kAlways) return true;
    count_calls();
    const auto found = calls_.find(process_key(peer.node, peer.process));
    if (found == calls_.end()) return false;
    const std::int64_t latest = half.begin_ns + bounds_.between(half.at.node, peer.node);
    const auto after =
        std::upper_bound(found->second.begin(), found->second.end(), latest,
                         [](std::int64_t ns, const Counted& call) { return ns < call.begin_ns; });
    if (after == found->second.begin()) return false;
    return std::prev(after)->least_wire_id <= source(half).wire_id;
}

}  // namespace ringside::agent
