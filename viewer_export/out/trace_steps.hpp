// Iterations as slices between boundaries: a row for each kind.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "viewer_export/model/steps.hpp"
#include "viewer_export/out/trace_tracks.hpp"

namespace ringside::viewer_export::trace {

using model::Step;

/// The steps of one kind of boundary in one process. Of the chosen kind readers know each as ProfilerStep#N.
struct Steps : model::Steps {
    std::uint32_t track;
};

/// Makes rows for them.
/// @param steps  of processes that are drawn
std::vector<Steps> steps_of(const model::Job& job, const std::vector<model::Steps>& steps,
                            Tracks& tracks);

/// What readers count steps by.
inline std::string profiler_step(std::uint64_t number) {
    return "ProfilerStep#" + std::to_string(number);
}

}  // namespace ringside::viewer_export::trace
