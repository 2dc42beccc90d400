#include "viewer_export/out/trace_arrows.hpp"

#include <algorithm>

#include "viewer_export/model/rpc_tree.hpp"

namespace ringside::viewer_export::trace {

using model::Index;
using model::kNone;

namespace {

std::int64_t before_end(const Tip& tip) {
    return std::max(tip.begin_ns, tip.end_ns - 1);
}

/// Perfetto binds an arrow to the slice of the row that began last: arrows leave and arrive at begins, or on rows without nesting.
template <class Event>
Tip begin_of(const Event& event) {
    return {event.begin_ns, event.begin_ns, event.end_ns};
}

template <class Event>
Tip end_of(const Event& event) {
    Tip tip = begin_of(event);
    tip.ns = before_end(tip);
    return tip;
}

/// The end of an arrow that is at its first slice, or at its second one.
Flow flow_at(const char* category, std::uint64_t id, const Arrow& arrow, bool first, bool at_end) {
    return {category, id, first ? arrow.from_ns : arrow.to_ns, first != arrow.turned, at_end};
}

}  // namespace

Arrow drawn_forward(Tip from, Tip to) {
    if (to.ns <= from.ns) to.ns = std::max(to.ns, std::min(from.ns + 1, before_end(to)));
    if (to.ns <= from.ns) from.ns = std::min(from.ns, std::max(to.ns - 1, from.begin_ns));
    return {from.ns, to.ns, to.ns < from.ns};
}

/// @return the half's call where both ends of it are drawn and joined
const model::Call* Arrows::joined(Index half) const {
    const model::Call& call = job_.calls[job_.halves[half].call];
    if (call.state != model::CallState::kJoined || !call.both() || !model::is_real(job_, call) ||
        (half != call.client && half != call.server))
        return nullptr;
    const auto is_drawn = [&](Index each) {
        return job_.halves[each].shown() && drawn_[job_.halves[each].process];
    };
    return is_drawn(call.client) && is_drawn(call.server) ? &call : nullptr;
}

std::optional<Flow> Arrows::request_of(Index half) const {
    const model::Call* call = joined(half);
    if (call == nullptr) return {};
    const Arrow arrow =
        drawn_forward(begin_of(job_.halves[call->client]), begin_of(job_.halves[call->server]));
    const std::uint64_t id = 2 * std::uint64_t{job_.halves[half].call} + 1;
    return flow_at("rpc", id, arrow, half == call->client, false);
}

std::optional<Flow> Arrows::reply_of(Index half) const {
    const model::Call* call = joined(half);
    if (call == nullptr || !model::reply_joined(job_, *call)) return {};
    const Arrow arrow =
        drawn_forward(end_of(job_.halves[call->server]), end_of(job_.halves[call->client]));
    const std::uint64_t id = 2 * std::uint64_t{job_.halves[half].call} + 2;
    return flow_at("rpc", id, arrow, half == call->server, true);
}

Arrows::Arrows(const model::Job& job, const std::vector<bool>& drawn)
    : job_(job), drawn_(drawn), forwards_(job, drawn), tied_(job.lanes.size()) {
    const auto bits_of = [&](Index lane) -> std::vector<bool>& {
        std::vector<bool>& bits = tied_[lane];
        if (bits.empty()) bits.resize(job.lanes[lane].ranges.size());
        return bits;
    };
    for (Index i = 0; i < job.lanes.size(); ++i) {
        lane_first_.push_back(ranges_);
        const auto& ranges = job.lanes[i].ranges;
        ranges_ += ranges.size();
        if (!drawn[job.lanes[i].process]) continue;
        for (Index k = 0; k < ranges.size(); ++k) {
            if (!is_backward(ranges[k])) continue;
            const auto forward = forwards_.of({i, k});
            // As in Kineto one arrow leaves a forward operator, however often its backward one ran.
            if (!forward || bits_of(forward->lane)[forward->range]) continue;
            bits_of(forward->lane)[forward->range] = bits_of(i)[k] = true;
            ++backwards_;
        }
    }
}

/// A forward operator begins before its backward one, so that the arrow needs no moving.
std::optional<Flow> Arrows::of_operator(RangeAt at) const {
    if (tied_[at.lane].empty() || !tied_[at.lane][at.range]) return {};
    const model::Range& range = job_.lanes[at.lane].ranges[at.range];
    const bool arrives = is_backward(range);
    const RangeAt forward = arrives ? *forwards_.of(at) : at;
    return Flow{"fwdbwd", first_forward() + lane_first_[forward.lane] + forward.range,
                range.begin_ns, !arrives};
}

Arrow Arrows::launch(const model::GpuCall& call, Index work) const {
    return drawn_forward(begin_of(call), begin_of(job_.gpu_work[work]));
}

Flow Arrows::leaving(const model::GpuCall& call, Index work) const {
    return flow_at("ac2g", first_launch() + work, launch(call, work), true, false);
}

Flow Arrows::arriving(const model::GpuCall& call, Index work) const {
    return flow_at("ac2g", first_launch() + work, launch(call, work), false, false);
}

}  // namespace ringside::viewer_export::trace
