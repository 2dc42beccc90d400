// Memory for a capture: made real before anything touches it, within what the process, the node, its cgroups and the file system allow. What is
// refused is counted by what refused it (schema::Loss). Off the hot path: system calls, no wait, no malloc.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringside::inject {

/// Makes `bytes` at `start` (of a mapping of ours) real, by an error instead of the SIGBUS that a touch raises on a full tmpfs.
/// What lies there stays, whoever writes to it meanwhile. On any kernel; at once where it has MADV_POPULATE_WRITE (5.14), else page by page.
/// @param start  of a page
/// @thread thread-safe, async-signal-safe
bool populate(void* start, std::size_t bytes);

/// As populate(), for memory that a capture wants: counted as the process's, and refused beyond its budget or the node's (the control page's),
/// where it would take more than half of what is free on the file system, or bring a memory cgroup near its limit. After a refusal by one of
/// the last two nothing is asked for some milliseconds, so that a dropped record stays cheap.
/// @thread thread-safe, async-signal-safe
bool populate_within_limits(void* start, std::size_t bytes);

/// What populate_within_limits() has counted for pages that another thread has made real and counted, too.
/// @thread thread-safe, async-signal-safe
void count_again_less(std::size_t bytes);

/// A forked child's segment is in use: what it has of its parent's counts on the node, too.
void count_inherited();

/// A forked child: what the parent's other threads were about to take is not its own.
void reset_budget_after_fork();

}  // namespace ringside::inject
