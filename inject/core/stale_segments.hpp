// Segments that processes without a last word have left: exec() replaces a program without its exit, kill and _exit() end one. Where
// nothing was recorded in them, the next process of the job that starts removes them, so that they don't pile up where there is no agent.
#pragma once

#include <cstdint>

#include "inject/core/file_descriptor.hpp"

namespace ringside::inject {

/// Removes from `directory` the segments without a record whose processes are gone: the one that this process had before an exec, always;
/// other processes' where no agent holds the directory, for an agent tells how a process has ended.
/// @param directory      a job directory, opened for reading, not read yet
/// @param pid_namespace  of this process; others' pids mean nothing here, their segments are left alone
/// @thread main thread, at load, before the process's own segment is made
void remove_stale_segments(const FileDescriptor& directory, std::uint64_t pid_namespace);

}  // namespace ringside::inject
