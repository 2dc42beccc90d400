// The process's segment: made at load and after fork, locked through its mapping, unlinked at exit where nothing was recorded.
#pragma once

#include "inject/core/file_descriptor.hpp"
#include "inject/core/identity.hpp"
#include "inject/core/job_directory.hpp"

namespace ringside::inject {

/// Makes the job directory, the control page and the segment, and puts them into g_process.
/// @return false: nothing is left behind, and the process is not traced
/// @thread main thread, at load
bool open_segment(const JobPath& path, const Identity& identity);

/// The folder that the segments lie beneath; empty before open_segment().
const char* segment_root();
/// The directory that the segment lies in.
FileDescriptor own_job_directory();

/// When a forked child gets its segment.
enum class ForkedSegment {
    kNow,    ///< a framework is there, or a capture runs
    kNever,  ///< a hook that was interrupted by the fork still writes into the parent's: it gets memory of nobody, and the child is not traced
    kIfNeeded,  ///< most children of programs without a framework only exec: make_pending_segment() makes it should they stay
};

/// A forked child's: takes the parent's ring out of its reach, whose lock ends with the parent's mapping, and puts a segment of its own
/// there. Names, worker and levels are carried over. Where it can't be made the child is not traced.
/// @thread the child's only one, before anything else
void replace_segment_after_fork(ForkedSegment when);

/// Makes the segment that a fork left for later; nothing to do otherwise.
/// @thread thread-safe
void make_pending_segment();

/// Maps what lies behind the header, the first time that anything there is needed. 16 GiB of address room have page tables of their own: a start
/// and an end of a process that records nothing would be a tenth more expensive for it.
/// @return false: there is no room for it, or no segment
/// @thread thread-safe, async-signal-safe; not in a child that no handler of ours saw
bool map_whole_segment();

/// Marks the end; unlinks the file where nothing was recorded.
/// @thread main thread, at exit
void close_segment();

}  // namespace ringside::inject
