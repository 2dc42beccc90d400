#include "viewer_export/out/trace_counters.hpp"

#include <algorithm>

namespace ringside::viewer_export::trace {

using model::Index;

namespace {

/// Changes to values, by time: summed up, one point an instant.
std::vector<Point> summed(const std::vector<Point>& changes) {
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
    std::sort(changes.begin(), changes.end());
    return summed(changes);
}

std::vector<Point> busy(const model::Job& job, const Tracks& tracks, const Tracks::Device& device) {
    const auto first = std::partition_point(
        job.gpu_work.begin(), job.gpu_work.end(),
        [&](const model::GpuWork& work) { return work.process < device.process; });
    std::vector<std::int64_t> ends;
    std::vector<Point> begins;
    for (auto work = first; work != job.gpu_work.end() && work->process == device.process; ++work) {
        if (!work->on_device() || tracks.device_of(*work) != device.device) continue;
        begins.push_back({work->begin_ns, 1});
        ends.push_back(std::max(work->begin_ns, work->end_ns));
    }
    std::sort(ends.begin(), ends.end());
    std::vector<Point> changes;
    changes.reserve(2 * ends.size());
    std::size_t next = 0;
    for (const Point& begin : begins) {
        for (; next < ends.size() && ends[next] <= begin.ns; ++next)
            changes.push_back({ends[next], -1});
        changes.push_back(begin);
    }
    for (; next < ends.size(); ++next) changes.push_back({ends[next], -1});
    return summed(changes);
}

}  // namespace ringside::viewer_export::trace
