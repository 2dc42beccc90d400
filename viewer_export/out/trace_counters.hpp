// Counters that are made of events: how long iterations took, what was lost, how much a GPU did at once.
#pragma once

#include <cstdint>
#include <vector>

#include "viewer_export/model/job.hpp"
#include "viewer_export/out/trace_steps.hpp"
#include "viewer_export/out/trace_tracks.hpp"

namespace ringside::viewer_export::trace {

inline constexpr const char* kIterationTime = "iteration time (ns)";
inline constexpr const char* kLost = "lost records";
inline constexpr const char* kGpuBusy = "GPU busy";

struct Point {
    std::int64_t ns;
    std::int64_t value;
    auto operator<=>(const Point&) const = default;
};

/// Of each step, from its begin on; 0 after the last.
std::vector<Point> iteration_times(const Steps& steps);

/// All that `process` had lost by then, from `from_ns` on: a lane's loss is told where it ended.
std::vector<Point> losses(const model::Job& job, model::Index process, std::int64_t from_ns);

/// How many kernels, copies and memsets were under way on a device.
std::vector<Point> busy(const model::Job& job, const Tracks& tracks, const Tracks::Device& device);

}  // namespace ringside::viewer_export::trace
