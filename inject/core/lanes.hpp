// Lanes: where a thread's first record gets its ring from, and where it goes when the thread ends. The slow path: it may make system
// calls that map and populate pages; it never waits and never calls malloc.
#pragma once

#include <cstdint>

#include "inject/core/emit.hpp"

namespace ringside::inject {

/// Opens a lane for the calling thread: one that the agent has drained and freed, else a new one at the end of the segment.
/// @param lane  the thread's own
/// @return false where the process's budget, the table or memory is used up: it is left as it is
/// @thread thread-safe, async-signal-safe
bool acquire_lane(ThreadLane& lane);

/// Changes the thread's name in the lane that `tid` uses, if any.
/// @param name  schema::kThreadNameBytes, NUL-padded
/// @thread thread-safe; readers may see a mixture of two names for a moment
void rename_lane(std::uint32_t tid, const char* name);

/// Closes a lane and gives it back; the agent frees it once it is drained.
/// @thread the lane's own
void release_lane(ThreadLane& lane);

}  // namespace ringside::inject
