#include "viewer_export/out/trace_counters.hpp"

#include <algorithm>

namespace ringside::viewer_export::trace {

using model::Index;

namespace {

/// Changes to values: sorted, summed up, one point an instant.
std::vector<Point> summed(std::vector<Point> changes) {
    std::sort(changes.begin(), changes.end());
    std::vector<Point> points;
    std::int64_t sum = 0;
    for (const Point& change : changes) {
        sum += change.value;
        if (!points.empty() && points.back().ns == change.ns) {
            points.back().value = sum;
        } else {
            points.push_back({change.ns, sum});
        }
    }
    return points;
}

}  // namespace

std::vector<Point> iteration_times(const Steps& steps) {
    std::vector<Point> points;
    for (const Step& step : steps.list)
        points.push_back({step.begin_ns, step.end_ns - step.begin_ns});
    points.push_back({steps.list.back().end_ns, 0});
    return points;
}

std::vector<Point> losses(const model::Job& job, Index process, std::int64_t from_ns) {
    const model::Node& node = job.nodes[job.processes[process].node];
    std::vector<Point> changes{{from_ns, 0}};
    for (const model::Lane& lane : job.lanes) {
        if (lane.process != process || lane.account.lost == 0) continue;
        std::int64_t ns = node.calibration.node_ns(lane.account.last_lost_ticks);
        if (job.corrected) ns = node.clock.leader_ns(ns);
        changes.push_back({std::max(ns, from_ns), static_cast<std::int64_t>(lane.account.lost)});
    }
    return summed(std::move(changes));
}

std::vector<Point> busy(const model::Job& job, const Tracks& tracks, const Tracks::Device& device) {
    std::vector<Point> changes;
    for (const model::GpuWork& work :
         std::ranges::equal_range(job.gpu_work, device.process, {}, &model::GpuWork::process)) {
        if (!work.on_device() || tracks.device_of(work) != device.device) continue;
        changes.push_back({work.begin_ns, 1});
        changes.push_back({work.end_ns, -1});
    }
    return summed(std::move(changes));
}

}  // namespace ringside::viewer_export::trace
