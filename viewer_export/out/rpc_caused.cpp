#include "viewer_export/out/rpc_caused.hpp"

#include <algorithm>

#include "viewer_export/model/bounded_sum.hpp"
#include "viewer_export/model/nesting.hpp"
#include "viewer_export/model/work_name.hpp"
#include "viewer_export/out/table_footer.hpp"

namespace ringside::viewer_export::rpc {

using model::Index;
using model::Job;
using model::kNone;

namespace {

std::string what_of(const model::Range& range) {
    if (!model::is_users(range)) return "operator";
    if (range.source == schema::SourceId::kTorch) return "range";
    if (range.source == schema::SourceId::kCupti) return "CUDA call";
    return source_name(range.source) +
           std::string(range.source == schema::SourceId::kMpi ? " call" : " range");
}

}  // namespace

Caused::Caused(const Job& job, const Forest& forest, const std::vector<Index>& roots)
    : job_(job), left_out_(model::left_out(job)), cuda_(job) {
    std::vector<Index> calls = roots;
    for (std::size_t i = 0; i < calls.size(); ++i) {
        const auto children = forest.children(calls[i]);
        calls.insert(calls.end(), children.begin(), children.end());
    }
    for (const Index call : calls) {
        if (const Index half = job.calls[call].server; half != kNone) halves_[half] = call;
    }
    find_windows();
    add_lanes();
    add_others();
    for (auto& [call, events] : events_) {
        std::stable_sort(events.begin(), events.end(),
                         [](const Event& a, const Event& b) { return a.begin_ns < b.begin_ns; });
    }
}

const std::vector<Event>& Caused::events(Index call) const {
    static const std::vector<Event> kNothing;
    const auto found = events_.find(call);
    return found == events_.end() ? kNothing : found->second;
}

std::vector<RanRow> Caused::ran(Index call) const {
    std::map<std::pair<std::string, std::string>, Ran> sums;
    for (const Event& event : events(call)) {
        if (!event.counted) continue;
        Ran& sum = sums[{event.what, event.name + (event.ended ? "" : " [not ended]")}];
        ++sum.count;
        model::add_to(sum.total_ns, event.total_ns);
        model::add_to(sum.self_ns, event.self_ns);
    }
    std::vector<RanRow> rows;
    rows.reserve(sums.size());
    for (const auto& [what, sum] : sums) rows.push_back({what.first, what.second, sum});
    std::stable_sort(rows.begin(), rows.end(), [](const RanRow& one, const RanRow& other) {
        return one.sums.total_ns > other.sums.total_ns;
    });
    return rows;
}

/// When requests of the tree were in each process: what ran then without anybody knowing for whom may have been theirs.
void Caused::find_windows() {
    for (const auto& [half, call] : halves_) {
        const model::Half& served = job_.halves[half];
        if (served.shown()) windows_[served.process].push_back({served.begin_ns, served.end_ns});
    }
    for (auto& [process, windows] : windows_) {
        std::sort(windows.begin(), windows.end());
        std::vector<Window> merged;
        for (const Window& next : windows) {
            if (!merged.empty() && next.first <= merged.back().second) {
                merged.back().second = std::max(merged.back().second, next.second);
            } else {
                merged.push_back(next);
            }
        }
        windows = std::move(merged);
    }
}

/// The call that the event belongs to; counts what may, but nobody knows.
Index Caused::call_of(Index request, Index lane, std::int64_t begin_ns) {
    if (request == model::kUnknownRequest) {
        const auto windows = windows_.find(job_.lanes[lane].process);
        if (windows == windows_.end()) return kNone;
        const auto after =
            std::partition_point(windows->second.begin(), windows->second.end(),
                                 [&](const Window& window) { return window.first <= begin_ns; });
        if (after == windows->second.begin() || std::prev(after)->second < begin_ns) return kNone;
        ++unknown_.events;
        unknown_.lanes.insert(lane);
        return kNone;
    }
    const auto found = halves_.find(request);
    return found == halves_.end() ? kNone : found->second;
}

void Caused::add_lanes() {
    for (Index i = 0; i < job_.lanes.size(); ++i) {
        const model::Lane& lane = job_.lanes[i];
        const auto calls = cuda_.calls_of(i);
        std::vector<Index> call_of_range(lane.ranges.size());
        bool any = false;
        for (std::size_t k = 0; k < lane.ranges.size(); ++k) {
            const model::Range& range = lane.ranges[k];
            call_of_range[k] = call_of(range.request, i, range.begin_ns);
            any = any || call_of_range[k] != kNone;
        }
        for (const Index call : calls) {
            const model::GpuCall& gpu = job_.gpu_calls[call];
            any = call_of(gpu.request, i, gpu.begin_ns) != kNone || any;
        }
        if (!any) continue;
        const model::ThreadRanges thread = cuda_.with_calls(lane.ranges, calls);
        add_ranges(i, thread.ranges);
    }
}

void Caused::add_ranges(Index lane, const std::vector<model::Range>& ranges) {
    const model::Nesting nesting = model::nest(ranges, &left_out_);
    for (std::size_t k = 0; k < ranges.size(); ++k) {
        const model::Range& range = ranges[k];
        const auto call = halves_.find(range.request);
        if (call == halves_.end() || left_out_[range.name]) continue;
        events_[call->second].push_back(
            {what_of(range), job_.names[range.name], range.begin_ns, range.duration_ns(),
             nesting.folded[k] ? 0 : nesting.self_ns[k], lane, range.position,
             range.end == model::End::kEnded, !nesting.folded[k]});
    }
}

void Caused::add_others() {
    for (const model::AsyncRange& range : job_.asyncs) {
        const Index call = call_of(range.request, range.lane, range.begin_ns);
        if (call == kNone) continue;
        events_[call].push_back({"asynchronous range", job_.names[range.name], range.begin_ns,
                                 range.duration_ns(), 0, range.lane, range.position,
                                 range.end == model::End::kEnded});
    }
    for (const model::Value& value : job_.values) {
        const Index call = call_of(value.request, value.lane, value.ns);
        if (call == kNone || value.kind == schema::RecordKind::kCounter || left_out_[value.name])
            continue;
        const bool boundary = value.kind == schema::RecordKind::kIteration;
        events_[call].push_back({boundary ? "iteration" : "mark", job_.names[value.name], value.ns,
                                 0, 0, value.lane, value.position});
    }
    model::WorkNames names(job_.names);
    for (Index i = 0; i < job_.gpu_work.size(); ++i) {
        const model::GpuWork& work = job_.gpu_work[i];
        if (!work.on_device() || work.call == kNone) continue;
        const auto call = halves_.find(job_.gpu_calls[work.call].request);
        if (call == halves_.end()) continue;
        const bool kernel = work.kind == schema::RecordKind::kGpuKernel;
        events_[call->second].push_back(
            {kernel ? "kernel" : "GPU copy", std::string(names.of(work)), work.begin_ns,
             cuda_.of_work(i).total_ns, cuda_.of_work(i).self_ns, kNone});
    }
}

}  // namespace ringside::viewer_export::rpc
