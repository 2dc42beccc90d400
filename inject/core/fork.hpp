// fork(): the child is a process of its own, with its own segment, lanes and helper. Never two writers in one ring.
#pragma once

namespace ringside::inject {

/// @thread main thread, at load, once
void watch_forks();

/// A child's helper is made last. A thread wants memory, and an allocator that is preloaded before us (jemalloc) has its locks still taken while our first
/// handler runs: handlers in a child run in the order in which they were registered, and it registers at its first allocation.
/// @thread thread-safe, once, when a process has its first helper
void watch_forks_for_helper();

}  // namespace ringside::inject
