// The process's segment: made at load and after fork, locked through its mapping, unlinked at exit where nothing was recorded.
#pragma once

#include "inject/core/identity.hpp"
#include "inject/core/job_directory.hpp"

namespace ringside::inject {

/// Makes the job directory, the control page and the segment, and puts them into g_process.
/// @return false: nothing is left behind, and the process is not traced
/// @thread main thread, at load
bool open_segment(const JobPath& path, const Identity& identity);

/// A forked child's: a segment of its own over the parent's mapping, whose lock ends with that. Names, worker and levels are carried
/// over. Where it can't be made, an empty private mapping takes the place and the child is not traced.
/// @thread the child's only one, before anything else
void replace_segment_after_fork();

/// Marks the end; unlinks the file where nothing was recorded.
/// @thread main thread, at exit
void close_segment();

}  // namespace ringside::inject
