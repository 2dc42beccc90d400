#include "viewer_export/out/trace_arrows.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "viewer_export/model/rpc_tree.hpp"

namespace ringside::viewer_export::trace {

using model::Half;
using model::Index;
using model::kNone;

namespace {

struct Forward {
    std::uint32_t thread;
    std::int64_t sequence;
    std::int64_t begin_ns;
    Index lane;
    Index range;
    auto key() const { return std::tuple(thread, sequence, begin_ns); }
};

bool is_forward(const model::Range& range) {
    return range.is_operator && range.argument >= 0 &&
           range.detail == static_cast<std::uint8_t>(schema::TorchScope::kFunction);
}

bool is_backward(const model::Range& range) {
    return range.is_operator && range.argument >= 0 && range.forward_thread != 0 &&
           range.detail == static_cast<std::uint8_t>(schema::TorchScope::kBackward);
}

/// Forward operators by (thread, sequence, begin), of the processes that have backward ones.
std::map<Index, std::vector<Forward>> forwards_of(const model::Job& job,
                                                  const std::vector<bool>& drawn) {
    std::map<Index, std::vector<Forward>> forwards;
    for (const model::Lane& lane : job.lanes) {
        if (drawn[lane.process] && std::any_of(lane.ranges.begin(), lane.ranges.end(), is_backward))
            forwards[lane.process];
    }
    for (Index i = 0; i < job.lanes.size(); ++i) {
        const auto process = forwards.find(job.lanes[i].process);
        if (process == forwards.end()) continue;
        const auto& ranges = job.lanes[i].ranges;
        for (Index k = 0; k < ranges.size(); ++k) {
            if (!is_forward(ranges[k])) continue;
            process->second.push_back(
                {ranges[k].thread, ranges[k].argument, ranges[k].begin_ns, i, k});
        }
    }
    for (auto& [process, list] : forwards) {
        std::sort(list.begin(), list.end(), [](const Forward& left, const Forward& right) {
            return left.key() < right.key();
        });
    }
    return forwards;
}

/// @return the latest forward operator of the thread and sequence that `range` names and that began before it; null: none
const Forward* forward_of(const std::vector<Forward>& forwards, const model::Range& range) {
    const std::tuple key(range.forward_thread, range.argument, range.begin_ns);
    const auto after =
        std::partition_point(forwards.begin(), forwards.end(),
                             [&](const Forward& forward) { return forward.key() < key; });
    if (after == forwards.begin()) return nullptr;
    const Forward& found = *(after - 1);
    return found.thread == range.forward_thread && found.sequence == range.argument ? &found
                                                                                    : nullptr;
}

std::int64_t before_end(const Tip& tip) {
    return std::max(tip.begin_ns, tip.end_ns - 1);
}

/// Perfetto binds an arrow to the slice of the row that began last: arrows leave and arrive at begins, or on rows without nesting.
template <class Event>
Tip begin_of(std::uint32_t track, const Event& event) {
    return {track, event.begin_ns, event.begin_ns, event.end_ns};
}

template <class Event>
Tip end_of(std::uint32_t track, const Event& event) {
    Tip tip = begin_of(track, event);
    tip.ns = before_end(tip);
    return tip;
}

}  // namespace

Arrow drawn_forward(Arrow arrow) {
    auto& [category, id, from, to] = arrow;
    if (to.ns <= from.ns) to.ns = std::max(to.ns, std::min(from.ns + 1, before_end(to)));
    if (to.ns <= from.ns) from.ns = std::min(from.ns, std::max(to.ns - 1, from.begin_ns));
    if (to.ns < from.ns) std::swap(from, to);
    return arrow;
}

std::uint64_t Arrows::add(const char* category, const Tip& from, const Tip& to) {
    const std::uint64_t id = arrows_.size() + 1;
    arrows_.push_back(drawn_forward({category, id, from, to}));
    return id;
}

void Arrows::add_calls(const model::Job& job, const Tracks& tracks,
                       const std::vector<bool>& drawn) {
    for (const model::Call& call : job.calls) {
        if (call.state != model::CallState::kJoined || !call.both() || !model::is_real(job, call))
            continue;
        const Half& client = job.halves[call.client];
        const Half& server = job.halves[call.server];
        if (!drawn[client.process] || !drawn[server.process]) continue;
        const std::uint32_t out = tracks.half_track(call.client);
        const std::uint32_t in = tracks.half_track(call.server);
        const std::uint64_t request = add("rpc", begin_of(out, client), begin_of(in, server));
        half_requests_[call.client] = half_requests_[call.server] = request;
        ++requests_;
        if (!model::reply_joined(job, call)) continue;
        const std::uint64_t reply = add("rpc", end_of(in, server), end_of(out, client));
        half_replies_[call.client] = half_replies_[call.server] = reply;
        ++replies_;
    }
}

void Arrows::add_backwards(const model::Job& job, const Tracks& tracks,
                           const std::vector<bool>& drawn) {
    const std::map<Index, std::vector<Forward>> forwards = forwards_of(job, drawn);
    if (forwards.empty()) return;
    for (Index i = 0; i < job.lanes.size(); ++i) {
        const auto process = forwards.find(job.lanes[i].process);
        if (process == forwards.end()) continue;
        const auto& ranges = job.lanes[i].ranges;
        for (Index k = 0; k < ranges.size(); ++k) {
            if (!is_backward(ranges[k])) continue;
            const Forward* forward = forward_of(process->second, ranges[k]);
            if (forward == nullptr) continue;
            const std::uint64_t id = add("fwdbwd",
                                         begin_of(tracks.range_track(forward->lane, forward->range),
                                                  job.lanes[forward->lane].ranges[forward->range]),
                                         begin_of(tracks.range_track(i, k), ranges[k]));
            ties_.push_back({forward->lane, forward->range, id});
            ties_.push_back({i, k, id});
        }
    }
    std::sort(ties_.begin(), ties_.end());
}

/// By call: counted, then placed.
void Arrows::add_launches(const model::Job& job) {
    if (job.gpu_calls.empty()) return;
    work_first_.resize(job.gpu_calls.size() + 1, 0);
    const auto launched = [](const model::GpuWork& work) {
        return work.on_device() && work.call != kNone;
    };
    for (const model::GpuWork& work : job.gpu_work) {
        if (launched(work)) ++work_first_[work.call + 1];
    }
    for (std::size_t i = 1; i < work_first_.size(); ++i) work_first_[i] += work_first_[i - 1];
    work_.resize(work_first_.back());
    std::vector<std::size_t> next(work_first_.begin(), work_first_.end() - 1);
    for (Index i = 0; i < job.gpu_work.size(); ++i) {
        if (launched(job.gpu_work[i])) work_[next[job.gpu_work[i].call]++] = i;
    }
}

Arrows::Arrows(const model::Job& job, const Tracks& tracks, const std::vector<bool>& drawn)
    : half_requests_(job.halves.size(), 0), half_replies_(job.halves.size(), 0) {
    add_calls(job, tracks, drawn);
    add_backwards(job, tracks, drawn);
    add_launches(job);
}

std::span<const Tied> Arrows::of_range(Index lane, Index range) const {
    const auto first = std::lower_bound(ties_.begin(), ties_.end(), Tied{lane, range, 0});
    auto last = first;
    while (last != ties_.end() && last->lane == lane && last->range == range) ++last;
    return {first, last};
}

std::span<const Index> Arrows::work_of(Index call) const {
    if (work_first_.empty()) return {};
    return std::span(work_).subspan(work_first_[call], work_first_[call + 1] - work_first_[call]);
}

}  // namespace ringside::viewer_export::trace
