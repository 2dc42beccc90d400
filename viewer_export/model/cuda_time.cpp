#include "viewer_export/model/cuda_time.hpp"

#include <algorithm>
#include <map>

#include "viewer_export/model/bounded_sum.hpp"

namespace ringside::viewer_export::model {

namespace {

/// How much of a device each piece of work under way has had since the first began, to 2^-32 ns: rounded down, so that sums are never too great.
struct Part {
    std::int64_t ns = 0;
    std::uint32_t fraction = 0;

    void grow(std::uint64_t busy_ns, std::uint64_t sharers) {
        const std::uint64_t more = fraction + (busy_ns % sharers << 32) / sharers;
        fraction = static_cast<std::uint32_t>(more);
        add_to(ns, static_cast<std::int64_t>(busy_ns / sharers + (more >> 32)));
    }
    std::int64_t whole_ns_since(const Part& begin) const {
        return ns - begin.ns - (fraction < begin.fraction ? 1 : 0);
    }
};

std::int64_t end_of(const GpuWork& work) {
    return std::max(work.begin_ns, work.end_ns);
}

/// One walk over a device's work, its begins and its ends both by time.
void share_device(const std::vector<GpuWork>& all, const std::vector<Index>& by_begin,
                  std::vector<CudaTime>& times) {
    std::vector<Index> by_end = by_begin;
    std::stable_sort(by_end.begin(), by_end.end(),
                     [&](Index a, Index b) { return end_of(all[a]) < end_of(all[b]); });
    std::vector<Part> begun(by_begin.size());
    std::vector<std::size_t> place(by_begin.size());  // in by_begin, of each in by_end
    for (std::size_t i = 0; i < by_end.size(); ++i) {
        place[i] = static_cast<std::size_t>(
            std::lower_bound(by_begin.begin(), by_begin.end(), by_end[i]) - by_begin.begin());
    }
    Part part;
    std::uint64_t under_way = 0;
    std::int64_t now = all[by_begin.front()].begin_ns;
    const auto go_on = [&](std::int64_t until) {
        if (under_way > 0) part.grow(static_cast<std::uint64_t>(until - now), under_way);
        now = until;
    };
    std::size_t next = 0;
    for (std::size_t i = 0; i < by_end.size(); ++i) {
        const std::int64_t end = end_of(all[by_end[i]]);
        for (; next < by_begin.size() && all[by_begin[next]].begin_ns <= end; ++next) {
            go_on(all[by_begin[next]].begin_ns);
            begun[next] = part;
            ++under_way;
        }
        go_on(end);
        --under_way;
        times[by_end[i]].self_ns = part.whole_ns_since(begun[place[i]]);
    }
}

bool outer_first(const Range& a, const Range& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
}

Range range_of(const GpuCall& call) {
    Range range{};
    range.begin_ns = call.begin_ns;
    range.end_ns = std::max(call.begin_ns, call.end_ns);
    range.position = call.position;
    range.name = call.name;
    range.request = call.request;
    range.source = schema::SourceId::kCupti;
    range.end = End::kEnded;
    range.attributes = kNone;
    range.shapes = kNone;
    return range;
}

}  // namespace

CudaTimes::CudaTimes(const Job& job)
    : job_(job), works_(job.gpu_work.size()), launched_(job.gpu_calls.size()) {
    share_out();
    for (Index i = 0; i < works_.size(); ++i) {
        const Index call = job.gpu_work[i].call;
        if (call == kNone) continue;
        add_to(launched_[call].total_ns, works_[i].total_ns);
        add_to(launched_[call].self_ns, works_[i].self_ns);
    }
    if (!job.gpu_work.empty()) add_to_requests();
    if (!job.gpu_calls.empty()) sort_calls();
}

/// A device is one process's: which of two processes' devices are one, no dump says.
void CudaTimes::share_out() {
    std::map<std::pair<Index, std::uint32_t>, std::vector<Index>> devices;
    for (Index i = 0; i < works_.size(); ++i) {
        const GpuWork& work = job_.gpu_work[i];
        if (!work.on_device()) continue;
        works_[i].total_ns = end_of(work) - work.begin_ns;
        devices[{work.process, work.device}].push_back(i);
    }
    for (const auto& [device, works] : devices) share_device(job_.gpu_work, works, works_);
}

/// Of each request, and of those that it was made for; children before their parents.
void CudaTimes::add_to_requests() {
    requests_.assign(job_.calls.size(), 0);
    for (Index i = 0; i < launched_.size(); ++i) {
        const Index request = job_.gpu_calls[i].request;
        if (request < job_.halves.size())
            add_to(requests_[job_.halves[request].call], launched_[i].total_ns);
    }
    std::vector<Index> children(job_.calls.size(), 0);
    for (const Call& call : job_.calls) {
        if (call.parent != kNone) ++children[call.parent];
    }
    std::vector<Index> ready;
    for (Index i = 0; i < children.size(); ++i) {
        if (children[i] == 0) ready.push_back(i);
    }
    while (!ready.empty()) {
        const Index call = ready.back();
        ready.pop_back();
        const Index parent = job_.calls[call].parent;
        if (parent == kNone) continue;
        add_to(requests_[parent], requests_[call]);
        if (--children[parent] == 0) ready.push_back(parent);
    }
}

void CudaTimes::sort_calls() {
    lane_calls_.resize(job_.lanes.size());
    std::map<std::pair<Index, std::uint32_t>, std::vector<Index>> others;
    for (Index i = 0; i < job_.gpu_calls.size(); ++i) {
        const GpuCall& call = job_.gpu_calls[i];
        if (call.thread_lane != kNone) {
            lane_calls_[call.thread_lane].push_back(i);
        } else {
            others[{call.process, call.thread}].push_back(i);
        }
    }
    for (auto& [thread, calls] : others) others_.push_back({thread.first, std::move(calls)});
}

std::span<const Index> CudaTimes::calls_of(Index lane) const {
    return lane_calls_.empty() ? std::span<const Index>() : lane_calls_[lane];
}

ThreadRanges CudaTimes::with_calls(std::span<const Range> ranges,
                                   std::span<const Index> calls) const {
    struct Entry {
        Range range;
        Index call;
    };
    const auto first = [](const Entry& a, const Entry& b) { return outer_first(a.range, b.range); };
    std::vector<Entry> entries;
    entries.reserve(ranges.size() + calls.size());
    for (const Range& range : ranges) entries.push_back({range, kNone});
    for (const Index call : calls) entries.push_back({range_of(job_.gpu_calls[call]), call});
    const auto middle = entries.begin() + static_cast<std::ptrdiff_t>(ranges.size());
    std::stable_sort(middle, entries.end(), first);
    std::inplace_merge(entries.begin(), middle, entries.end(), first);
    ThreadRanges thread;
    thread.ranges.reserve(entries.size());
    thread.calls.reserve(entries.size());
    for (const Entry& entry : entries) {
        thread.ranges.push_back(entry.range);
        thread.calls.push_back(entry.call);
    }
    return thread;
}

std::vector<CudaTime> CudaTimes::of_ranges(const ThreadRanges& thread,
                                           const Nesting& nesting) const {
    std::vector<CudaTime> times(thread.ranges.size());
    // Inner ones first: each hands on what it has once it has all of it.
    for (auto i = static_cast<Index>(times.size()); i-- > 0;) {
        const bool is_call = thread.calls[i] != kNone;
        if (is_call) {
            add_to(times[i].total_ns, launched_[thread.calls[i]].total_ns);
            add_to(times[i].self_ns, launched_[thread.calls[i]].self_ns);
        }
        if (const Index parent = nesting.parent[i]; parent != kNone) {
            add_to(times[parent].total_ns, times[i].total_ns);
            if (is_call || nesting.folded[i]) add_to(times[parent].self_ns, times[i].self_ns);
        }
        if (is_call) times[i] = {};
    }
    return times;
}

}  // namespace ringside::viewer_export::model
