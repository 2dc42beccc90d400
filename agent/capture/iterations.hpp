// What the processes of one node have of the iterations that a capture was asked for: how far they are while it runs, and what each of them has in
// the end. Those that have none of their own and belong to one that has (DataLoader's workers, a launcher) are told from those that miss theirs.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/capture/tracked_process.hpp"

namespace ringside::agent {

/// @param start_ticks  the agreed instant
IterationProgress iteration_progress(const std::vector<TrackedProcess*>& processes,
                                     const IterationWish& wish, std::uint64_t start_ticks,
                                     const Calibration& calibration);

/// Fills in TrackedProcess::iterations, once all is drained. Without a wish there are none.
void settle_iterations(const std::vector<TrackedProcess*>& processes, const IterationWish& wish);

}  // namespace ringside::agent
