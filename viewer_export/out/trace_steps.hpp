// Iterations as slices between boundaries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "viewer_export/model/job.hpp"
#include "viewer_export/out/trace_tracks.hpp"

namespace ringside::viewer_export::trace {

struct Step {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    std::uint64_t number;
};

/// The steps of one kind of boundary in one process.
struct Steps {
    model::Index process;
    model::Index boundary;  ///< Job::names
    bool profiler;          ///< readers know them as ProfilerStep#N
    std::uint32_t track;
    std::vector<Step> list;
};

/// Makes rows for them.
std::vector<Steps> steps_of(const model::Job& job, const std::vector<bool>& drawn, Tracks& tracks);

}  // namespace ringside::viewer_export::trace
