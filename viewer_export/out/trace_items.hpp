// What lies on the rows of threads that call CUDA, and on those of streams, in the order of time: outer before inner, made as it is walked, since there
// may be millions. trace_tracks asks it how many rows that takes, the walk what to draw on them.
//
//   thread    ranges of its lane, between them its calls of CUDA and overheads
//   stream    iterations and users' ranges as the device ran them, in them kernels, copies, memsets
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "viewer_export/model/job.hpp"
#include "viewer_export/out/trace_step_spans.hpp"
#include "viewer_export/out/trace_tracks.hpp"

namespace ringside::viewer_export::trace {

/// An index into Job's vector of its kind, of a projection into Tracks::projections(), of an iteration that of the boundary which begins it.
enum class ItemKind : std::uint8_t { kRange, kCall, kWork, kProjection, kStep };
struct Item {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    model::Index index;
    ItemKind kind;
};

/// Those of one process, in job order: by begin.
template <class Event>
std::pair<model::Index, model::Index> of_process(const std::vector<Event>& events,
                                                 model::Index process) {
    const auto first = std::partition_point(
        events.begin(), events.end(), [&](const Event& event) { return event.process < process; });
    const auto last = std::partition_point(
        first, events.end(), [&](const Event& event) { return event.process == process; });
    return {static_cast<model::Index>(first - events.begin()),
            static_cast<model::Index>(last - events.begin())};
}

/// One walk: each process's threads and streams once.
class Items {
public:
    Items(const model::Job& job, const Tracks& tracks)
        : job_(job), tracks_(tracks), next_(tracks.rows().size(), model::kNone) {}

    /// visit(index into Tracks::rows(), Item)
    template <class Visit>
    void walk(model::Index process, Visit&& visit) {
        threads(process, visit);
        streams(process, visit);
    }

private:
    using Index = model::Index;

    /// What has one begin, the longer first.
    template <class Visit>
    class LongerFirst {
    public:
        explicit LongerFirst(Visit visit) : visit_(std::move(visit)) {}
        ~LongerFirst() { flush(); }
        LongerFirst(const LongerFirst&) = delete;
        LongerFirst& operator=(const LongerFirst&) = delete;
        void add(Index rows, const Item& item) {
            if (!same_.empty() && same_.front().second.begin_ns != item.begin_ns) flush();
            same_.emplace_back(rows, item);
        }

    private:
        void flush() {
            if (same_.size() > 1) {
                std::stable_sort(same_.begin(), same_.end(), [](const auto& a, const auto& b) {
                    return a.second.end_ns > b.second.end_ns;
                });
            }
            for (const auto& [rows, item] : same_) visit_(rows, item);
            same_.clear();
        }
        Visit visit_;
        std::vector<std::pair<Index, Item>> same_;
    };

    /// Visits those of `events` from `next` on that lie around an item of these times or before it.
    template <class Event, class Visit>
    static void around(std::span<const Event> events, Index& next, std::int64_t begin_ns,
                       std::int64_t end_ns, Visit&& visit) {
        for (; next < events.size(); ++next) {
            const Event& event = events[next];
            if (event.begin_ns > begin_ns || (event.begin_ns == begin_ns && event.end_ns < end_ns))
                return;
            visit(next);
        }
    }

    template <class Visit>
    void threads(Index process, Visit& visit);
    template <class Visit>
    void streams(Index process, Visit& visit);

    const model::Job& job_;
    const Tracks& tracks_;
    std::vector<Index> next_;  ///< by rows: of the lane's ranges, of the stream's projections
};

template <class Visit>
void Items::threads(Index process, Visit& visit) {
    const auto ranges_before = [&](Index rows, std::int64_t begin_ns, std::int64_t end_ns) {
        const Index lane = tracks_.rows()[rows].lane;
        if (lane == model::kNone) return;
        const std::span<const model::Range> ranges(job_.lanes[lane].ranges);
        if (next_[rows] == model::kNone) next_[rows] = 0;
        around(ranges, next_[rows], begin_ns, end_ns, [&](Index i) {
            visit(rows, Item{ranges[i].begin_ns, ranges[i].end_ns, i, ItemKind::kRange});
        });
    };
    const auto [first_call, last_call] = of_process(job_.gpu_calls, process);
    const auto work_of = of_process(job_.gpu_work, process);
    Index next_work = work_of.first;
    {
        LongerFirst in_order([&](Index rows, const Item& item) {
            ranges_before(rows, item.begin_ns, item.end_ns);
            visit(rows, item);
        });
        const auto overheads_before = [&](std::int64_t ns) {
            for (; next_work < work_of.second && job_.gpu_work[next_work].begin_ns <= ns;
                 ++next_work) {
                const model::GpuWork& work = job_.gpu_work[next_work];
                if (work.kind != schema::RecordKind::kGpuOverhead) continue;
                in_order.add(tracks_.rows_of(work),
                             {work.begin_ns, std::max(work.begin_ns, work.end_ns), next_work,
                              ItemKind::kWork});
            }
        };
        for (Index i = first_call; i < last_call; ++i) {
            const model::GpuCall& call = job_.gpu_calls[i];
            overheads_before(call.begin_ns);
            in_order.add(tracks_.rows_of(call),
                         {call.begin_ns, std::max(call.begin_ns, call.end_ns), i, ItemKind::kCall});
        }
        overheads_before(std::numeric_limits<std::int64_t>::max());
    }
    for (Index rows = 0; rows < tracks_.rows().size(); ++rows) {
        if (tracks_.rows()[rows].process == process && tracks_.rows()[rows].mixed)
            ranges_before(rows, std::numeric_limits<std::int64_t>::max(), 0);
    }
}

template <class Visit>
void Items::streams(Index process, Visit& visit) {
    const std::vector<model::Projection>& projections = tracks_.projections();
    LongerFirst in_order([&](Index rows, const Item& item) {
        const auto of_rows = tracks_.projections_of(rows);
        const Index first = of_rows.first;
        if (next_[rows] == model::kNone) next_[rows] = 0;
        around(std::span(projections).subspan(first, of_rows.second - first), next_[rows],
               item.begin_ns, item.end_ns, [&](Index i) {
                   const model::Projection& each = projections[first + i];
                   visit(rows, Item{each.begin_ns, each.end_ns, first + i, ItemKind::kProjection});
               });
        visit(rows, item);
    });
    StepSpans steps(job_, tracks_.iterations_of(process));
    const auto [first, last] = of_process(job_.gpu_work, process);
    for (Index i = first; i < last; ++i) {
        const model::GpuWork& work = job_.gpu_work[i];
        if (!tracks_.draws_on_device(work)) continue;
        const Index rows = tracks_.rows_of(work);
        if (const auto step = steps.begun_by(work))
            in_order.add(rows, {step->begin_ns, step->end_ns, step->boundary, ItemKind::kStep});
        in_order.add(rows,
                     {work.begin_ns, std::max(work.begin_ns, work.end_ns), i, ItemKind::kWork});
    }
}

}  // namespace ringside::viewer_export::trace
