#include "tools/ringside/call_clocks.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "schema/request_id.hpp"

namespace ringside::tools {

using agent::NodeCapture;
using agent::PingSample;
using schema::mix64;
using schema::Nanoseconds;
using viewer_export::RpcRecord;

namespace {

/// Ids that are kept: some for each two of the nodes, and no more than the caches hold.
constexpr std::size_t kLeastIds = std::size_t{1} << 14;
constexpr std::size_t kIdsOfNode = 512;
/// A begin is that many ends away at most.
constexpr std::size_t kEndsKept = std::size_t{1} << 14;

Nanoseconds node_ns(const NodeCapture& node, std::uint64_t ticks) {
    return agent::node_time(node.calibration, schema::Ticks{ticks});
}

agent::ClockMeasurement measure(std::vector<PingSample> samples, agent::NodeInterval interval) {
    std::sort(samples.begin(), samples.end(), [](const PingSample& a, const PingSample& b) {
        return a.node_ns.value < b.node_ns.value;
    });
    const auto half = static_cast<std::ptrdiff_t>((samples.size() + 1) / 2);
    const std::vector<PingSample> before(samples.begin(), samples.begin() + half);
    const std::vector<PingSample> after(samples.begin() + half, samples.end());
    return agent::measure_clock(before, {}, after, interval);
}

/// A message between a node and one whose clock is known: when it left or arrived at each.
struct Way {
    std::int64_t node_ns;
    std::int64_t leader_ns;
};

/// What was sent to the node has arrived there after its begin; by what the node sent about then it is told when at the latest, for their
/// distance by the node's clock is one of the leader's but for the drift.
void add_message_pings(const std::vector<Way>& there, std::vector<Way> back,
                       std::vector<PingSample>& pings) {
    constexpr std::ptrdiff_t kAround = 4;
    const auto earlier = [](const Way& a, const Way& b) { return a.node_ns < b.node_ns; };
    std::sort(back.begin(), back.end(), earlier);
    for (const Way& way : there) {
        const auto next = std::lower_bound(back.begin(), back.end(), way, earlier);
        const auto last = next + std::min(kAround, back.end() - next);
        std::int64_t latest = std::numeric_limits<std::int64_t>::max();
        for (auto at = next - std::min(kAround, next - back.begin()); at != last; ++at) {
            const auto apart = static_cast<double>(at->node_ns - way.node_ns);
            latest = std::min(
                latest, agent::add_bounded(at->leader_ns,
                                           std::abs(apart) * agent::kMaxDriftPpb / 1e9 - apart));
        }
        if (!back.empty() && latest >= way.leader_ns)
            pings.push_back({{way.leader_ns}, {way.node_ns}, {latest}});
    }
}

}  // namespace

CallClocks::CallClocks(std::size_t nodes)
    : most_ids_(std::max(kLeastIds, nodes * kIdsOfNode)), recorded_(nodes) {}

void CallClocks::add(std::uint32_t node, const RpcRecord& record) {
    const std::uint64_t* words = record.words;
    recorded_[node].first = std::min(recorded_[node].first, words[1]);
    recorded_[node].last = std::max(recorded_[node].last, words[1]);
    const std::uint64_t half = mix64(words[2] ^ mix64(std::uint64_t{node} << 32 | record.process));
    if (record.begin) return begin(node, half, words);
    ends_.push_back({half, words[1], words[3]});
    if (ends_.size() >= 2 * kEndsKept) take_ends(kEndsKept);
}

void CallClocks::begin(std::uint32_t node, std::uint64_t half, const std::uint64_t* words) {
    const std::uint64_t span = words[6];
    if (mix64(span) > kept_below_) return;
    const bool server = (words[11] >> 8 & 0xff) != 0;
    Call& call = calls_[span];
    Half& side = server ? call.server : call.client;
    side = {node, side.count + 1, words[1], 0, false, schema::RpcStatus::kOk};
    open_[half] = {span, server};
    if (calls_.size() > most_ids_) thin_out();
}

void CallClocks::take_ends(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        const auto found = open_.find(ends_[i].half);
        if (found == open_.end()) continue;
        const auto call = calls_.find(found->second.span);
        if (call != calls_.end()) {
            Half& side = found->second.server ? call->second.server : call->second.client;
            side.end_ticks = ends_[i].ticks;
            side.ended = side.end_ticks >= side.begin_ticks;
            side.status = static_cast<schema::RpcStatus>(ends_[i].argument >> 56);
        }
        open_.erase(found);
    }
    ends_.erase(ends_.begin(), ends_.begin() + static_cast<std::ptrdiff_t>(count));
}

void CallClocks::thin_out() {
    kept_below_ /= 2;
    const auto goes = [this](std::uint64_t span) { return mix64(span) > kept_below_; };
    std::erase_if(calls_, [&](const auto& call) { return goes(call.first); });
    std::erase_if(open_, [&](const auto& half) { return goes(half.second.span); });
    open_.rehash(0);
}

/// Calls that both sides recorded to their end, with an id that occurs once on each.
std::map<std::pair<std::uint32_t, std::uint32_t>, CallClocks::Calls> CallClocks::shared_calls()
    const {
    std::map<std::pair<std::uint32_t, std::uint32_t>, Calls> shared;
    for (const auto& [span, call] : calls_) {
        const bool good = call.client.status == schema::RpcStatus::kOk ||
                          call.client.status == schema::RpcStatus::kSent;
        const bool whole = call.client.count == 1 && call.server.count == 1 && call.client.ended &&
                           call.server.ended && good;
        if (whole && call.client.node != call.server.node)
            shared[std::minmax(call.client.node, call.server.node)].push_back(&call);
    }
    return shared;
}

/// The node's times that a correction must cover: its halves, and the capture where its dump says when that was.
agent::NodeInterval CallClocks::interval_of(const NodeCapture& node, const Interval& halves) const {
    std::uint64_t first =
        node.start_ticks != 0 ? node.start_ticks : node.calibration.reference_ticks;
    std::uint64_t last = std::max(node.stop_ticks, first);
    first = std::min(first, halves.first);
    last = std::max(last, halves.last);
    return {node_ns(node, first), node_ns(node, last)};
}

/// Clocks spread from the first node along calls: a node that never spoke with it is reached through one that did.
void CallClocks::correct(std::vector<NodeCapture>& nodes) {
    take_ends(ends_.size());
    const auto shared = shared_calls();
    std::vector<std::uint32_t> reached = {0};
    std::vector<bool> known(nodes.size(), false);
    known[0] = true;
    // The call as a ping of `node` by `from`, whose times the leader's clock already tells.
    const auto as_ping = [&](const Call& call, std::uint32_t from, std::uint32_t node) {
        const agent::NodeClock clock = nodes[from].node_clock();
        const auto leader = [&](std::uint64_t ticks) {
            return clock.leader_ns(schema::Ticks{ticks}).value;
        };
        if (call.client.node == from) {
            return PingSample{{leader(call.client.begin_ticks)},
                              node_ns(nodes[node], call.server.begin_ticks),
                              {leader(call.client.end_ticks)}};
        }
        // The node called: its call encloses the moment at which the known side received it, so that moment told on the node's clock
        // lies between begin and end; moved to begin, the interval lies on the leader's side instead.
        const Nanoseconds begin = node_ns(nodes[node], call.client.begin_ticks);
        const std::int64_t took = std::clamp<std::int64_t>(
            node_ns(nodes[node], call.client.end_ticks).value - begin.value, 0, agent::kFarthestNs);
        const std::int64_t received = leader(call.server.begin_ticks);
        return PingSample{{received - took}, begin, {received}};
    };
    const auto as_way = [&](const Call& message, std::uint32_t from, std::uint32_t node) {
        const bool sent = message.client.node == from;
        const std::uint64_t here = sent ? message.client.begin_ticks : message.server.begin_ticks;
        const std::uint64_t theirs = sent ? message.server.begin_ticks : message.client.begin_ticks;
        return Way{node_ns(nodes[node], theirs).value,
                   nodes[from].node_clock().leader_ns(schema::Ticks{here}).value};
    };
    for (std::size_t at = 0; at < reached.size(); ++at) {
        const std::uint32_t from = reached[at];
        for (std::uint32_t n = 0; n < nodes.size(); ++n) {
            const auto calls = shared.find(std::minmax(from, n));
            if (known[n] || calls == shared.end()) continue;
            std::vector<PingSample> samples;
            std::vector<Way> there;
            std::vector<Way> back;
            for (const Call* call : calls->second) {
                if (call->client.status == schema::RpcStatus::kOk) {
                    samples.push_back(as_ping(*call, from, n));
                } else {
                    const bool sent = call->client.node == from;
                    (sent ? there : back).push_back(as_way(*call, from, n));
                }
            }
            add_message_pings(there, std::move(back), samples);
            if (samples.empty()) continue;  // messages one way alone: another node may tell
            const auto measured = measure(std::move(samples), interval_of(nodes[n], recorded_[n]));
            nodes[n].clock = measured.correction;
            std::int64_t& bound_ns = nodes[n].clock.bound_ns;
            bound_ns += std::min(nodes[from].clock.bound_ns,
                                 std::numeric_limits<std::int64_t>::max() - bound_ns);
            nodes[n].best_rtt_ns = measured.best_rtt_ns;
            known[n] = true;
            reached.push_back(n);
        }
    }
    for (std::uint32_t n = 0; n < nodes.size(); ++n) {
        if (!known[n]) nodes[n].clock = measure({}, interval_of(nodes[n], recorded_[n])).correction;
    }
}

}  // namespace ringside::tools
