#include "agent/correlate/join.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "agent/correlate/pairing.hpp"
#include "agent/correlate/sides.hpp"
#include "agent/correlate/tree.hpp"

namespace ringside::agent {
namespace {

using schema::RpcStatus;

const Half& half_of(std::span<const NodeCapture> nodes, HalfIndex at) {
    return nodes[at.node].halves[at.half];
}

std::vector<TimedHalf> timed(std::span<const NodeCapture> nodes) {
    std::vector<TimedHalf> all;
    std::size_t count = 0;
    for (const NodeCapture& node : nodes) count += node.halves.size();
    all.reserve(count);
    for (std::uint32_t n = 0; n < nodes.size(); ++n) {
        const NodeClock clock = nodes[n].node_clock();
        for (std::uint32_t h = 0; h < nodes[n].halves.size(); ++h) {
            const Half& half = nodes[n].halves[h];
            TimedHalf entry;
            entry.span = half.id.span.value;
            entry.trace_hi = half.id.trace.hi;
            entry.trace_lo = half.id.trace.lo;
            entry.begin_ns = clock.leader_ns(Ticks{half.begin_ticks}).value;
            if (half.ended) entry.end_ns = clock.leader_ns(Ticks{half.end_ticks}).value;
            entry.at = {n, h};
            entry.process = half.process;
            entry.server = half.server;
            entry.ended = half.ended;
            entry.replied = !half.server && half.ended && half.status == RpcStatus::kOk;
            all.push_back(entry);
        }
    }
    std::sort(all.begin(), all.end(), before);
    return all;
}

/// The clocks by which the result tells its times: the nodes' corrected ones, or each node's own.
class ToldTimes {
public:
    ToldTimes(std::span<const NodeCapture> nodes, bool corrected) {
        for (const NodeCapture& node : nodes) {
            clocks_.push_back({node.calibration, corrected ? node.clock : ClockCorrection{}});
        }
    }
    std::int64_t ns(std::uint32_t node, std::uint64_t ticks) const {
        return clocks_[node].leader_ns(Ticks{ticks}).value;
    }

private:
    std::vector<NodeClock> clocks_;
};

class Joiner {
public:
    Joiner(std::span<const NodeCapture> nodes, const JoinOptions& options)
        : nodes_(nodes),
          options_(options),
          halves_(timed(nodes)),
          bounds_(nodes),
          sides_(nodes, halves_, bounds_),
          told_(nodes, options.corrected) {}

    JoinResult run() {
        const Pairs pairs = pair_halves(halves_, bounds_);
        result_.calls.reserve(halves_.size());
        for (std::uint32_t i = 0; i < halves_.size(); ++i) {
            const std::uint32_t partner = pairs.partner[i];
            result_.counts.ambiguous += pairs.ambiguous[i];
            if (partner == kNoPartner) {
                add_single(halves_[i], pairs.ambiguous[i] != 0);
            } else if (!halves_[i].server) {
                add_pair(halves_[i], halves_[partner]);
            }
        }
        sort_calls();
        link_parents(nodes_, result_.calls);
        give_trace_ids(nodes_, options_.capture_id, result_.calls);
        return std::move(result_);
    }

private:
    void add_single(const TimedHalf& half, bool ambiguous) {
        Call call;
        call.span = {half.span};
        call.state = ambiguous ? RpcState::kCut : sides_.state_of(half);
        (half.server ? call.server : call.client) = half.at;
        if (call.state == RpcState::kOrphan) {
            ++result_.counts.orphans;
        } else {
            ++result_.counts.cut;
        }
        finish(call);
    }

    void add_pair(const TimedHalf& client, const TimedHalf& server) {
        Call call;
        call.span = {client.span};
        call.state = RpcState::kJoined;
        call.client = client.at;
        call.server = server.at;
        const std::int64_t bound = bounds_.between(client.at.node, server.at.node);
        const RpcStatus status = half_of(nodes_, client.at).status;
        // An answer that came, good or bad. An error before the server's end is the caller's own (a broken pipe).
        call.reply = client.ended && server.ended &&
                     (status == RpcStatus::kOk ||
                      (status == RpcStatus::kError && server.end_ns - bound <= client.end_ns));
        ++result_.counts.joined_requests;
        if (call.reply) ++result_.counts.joined_replies;
        finish(call);
        check_order(result_.calls.back(), bound);
    }

    void finish(Call& call) {
        if (call.client) {
            const Half& half = half_of(nodes_, *call.client);
            call.client_begin_ns = told_.ns(call.client->node, half.begin_ticks);
            if (half.ended) call.client_end_ns = told_.ns(call.client->node, half.end_ticks);
        }
        if (call.server) {
            const Half& half = half_of(nodes_, *call.server);
            call.server_begin_ns = told_.ns(call.server->node, half.begin_ticks);
            if (half.ended) call.server_end_ns = told_.ns(call.server->node, half.end_ticks);
        }
        call.unfinished =
            (call.client && left_open(*call.client)) || (call.server && left_open(*call.server));
        if (call.unfinished) ++result_.counts.unfinished;
        result_.calls.push_back(call);
    }

    /// A half that its process did not live to end.
    bool left_open(HalfIndex at) const {
        const Half& half = half_of(nodes_, at);
        return !half.ended && sides_.process_end_ns(at.node, half.process).has_value();
    }

    void check_order(const Call& call, std::int64_t bound_ns) {
        const bool request = call.server_begin_ns < call.client_begin_ns - bound_ns;
        const bool reply = call.reply && call.client_end_ns < call.server_end_ns - bound_ns;
        if (request || reply) ++result_.counts.order_violations;
    }

    void sort_calls() {
        const auto begin = [](const Call& call) {
            return call.client ? call.client_begin_ns : call.server_begin_ns;
        };
        const auto at = [](const Call& call) { return call.client ? *call.client : *call.server; };
        std::sort(result_.calls.begin(), result_.calls.end(), [&](const Call& a, const Call& b) {
            return std::tuple(begin(a), at(a), a.client.has_value()) <
                   std::tuple(begin(b), at(b), b.client.has_value());
        });
    }

    std::span<const NodeCapture> nodes_;
    const JoinOptions& options_;
    std::vector<TimedHalf> halves_;
    PairBound bounds_;
    Sides sides_;
    ToldTimes told_;
    JoinResult result_;
};

}  // namespace

JoinResult join(std::span<const NodeCapture> nodes, const JoinOptions& options) {
    return Joiner(nodes, options).run();
}

}  // namespace ringside::agent
