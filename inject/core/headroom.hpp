// Whether memory is ours to take. Shared memory counts against the job's memory cgroup, and there an allocation too many kills the job; and the
// file system of the segments is often the job's own /dev/shm. So it is asked before each piece: slow path, a few system calls.
#pragma once

#include <cstdint>

namespace ringside::inject {

/// Whether `bytes` more leave every memory cgroup above this process (v1 or v2) a margin below its limit. Page cache that the kernel would give
/// up first does not count. Where there is no cgroup, or none can be read: true.
/// @thread thread-safe, async-signal-safe
bool cgroups_allow(std::uint64_t bytes);

/// Whether `bytes` are at most half of what is free on the file system of `path`.
/// @thread thread-safe, async-signal-safe
bool file_system_allows(const char* path, std::uint64_t bytes);

/// The same with cgroups read beneath another folder than /sys/fs/cgroup, and the process's from another file than /proc/self/cgroup.
bool cgroups_allow(std::uint64_t bytes, const char* mount, const char* membership);

}  // namespace ringside::inject
