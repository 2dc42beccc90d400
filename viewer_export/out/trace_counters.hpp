// Counters that are made of events: how long iterations took, what was lost, how much a GPU did at once.
#pragma once

#include <cstdint>
#include <functional>

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

using ToldPoint = std::function<void(const Point&)>;

/// Of each step, from its begin on; 0 after the last.
void iteration_times(const model::Job& job, const Steps& steps, const ToldPoint& to);

/// All that `process` had lost by then, from `from_ns` on: a lane's loss is told where it ended.
void losses(const model::Job& job, model::Index process, std::int64_t from_ns, const ToldPoint& to);

/// How many kernels, copies and memsets were under way on a device. Memory is that many.
void busy(const model::Job& job, const Tracks& tracks, const Tracks::Device& device,
          const ToldPoint& to);

}  // namespace ringside::viewer_export::trace
