#include "viewer_export/out/trace_counters.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

#include "viewer_export/out/trace_items.hpp"

namespace ringside::viewer_export::trace {

using model::Index;

namespace {

/// Changes, told by time: their sums, one an instant.
class Sums {
public:
    explicit Sums(const ToldPoint& to) : to_(to) {}
    void add(std::int64_t ns, std::int64_t change) {
        if (any_ && ns != last_.ns) to_(last_);
        last_ = {ns, last_.value + change};
        any_ = true;
    }
    void finish() {
        if (any_) to_(last_);
    }

private:
    const ToldPoint& to_;
    Point last_{};
    bool any_ = false;
};

}  // namespace

void iteration_times(const model::Job& job, const Steps& steps, const ToldPoint& to) {
    for (Index i = 0; i < steps.count; ++i) {
        const Step step = steps.at(job, i);
        to({step.begin_ns, step.end_ns - step.begin_ns});
    }
    to({steps.end_ns(job), 0});
}

void losses(const model::Job& job, Index process, std::int64_t from_ns, const ToldPoint& to) {
    const model::Node& node = job.nodes[job.processes[process].node];
    std::vector<Point> changes{{from_ns, 0}};
    for (const model::Lane& lane : job.lanes) {
        if (lane.process != process || lane.account.lost == 0) continue;
        std::int64_t ns = node.calibration.node_ns(lane.account.last_lost_ticks);
        if (job.corrected) ns = node.clock.leader_ns(ns);
        changes.push_back({std::max(ns, from_ns), static_cast<std::int64_t>(lane.account.lost)});
    }
    std::sort(changes.begin(), changes.end());
    Sums sums(to);
    for (const Point& change : changes) sums.add(change.ns, change.value);
    sums.finish();
}

void busy(const model::Job& job, const Tracks& tracks, const Tracks::Device& device,
          const ToldPoint& to) {
    std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> ends;
    Sums sums(to);
    const auto end_until = [&](std::int64_t ns) {
        for (; !ends.empty() && ends.top() <= ns; ends.pop()) sums.add(ends.top(), -1);
    };
    const auto [first, last] = of_process(job.gpu_work, device.process);
    for (Index i = first; i < last; ++i) {
        const model::GpuWork& work = job.gpu_work[i];
        if (!work.on_device() || tracks.device_of(work) != device.device) continue;
        end_until(work.begin_ns);
        sums.add(work.begin_ns, 1);
        ends.push(std::max(work.begin_ns, work.end_ns));
    }
    end_until(std::numeric_limits<std::int64_t>::max());
    sums.finish();
}

}  // namespace ringside::viewer_export::trace
