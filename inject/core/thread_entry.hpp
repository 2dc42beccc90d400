// A thread's way into its lane and out of it. enter_hook() itself is declared beside HookScope, its only caller.
#pragma once

#include "inject/core/emit.hpp"

namespace ringside::inject {

/// Makes the key whose destructor releases a thread's lane.
/// @thread main thread, once, as early as possible
void prepare_thread_exit();

/// The calling thread has no lane.
/// @return false: a hook of it is being interrupted (by a signal handler that forks), and still writes to the lane that it has
/// @thread a forked child's only one, before any other hook
bool forget_thread();

/// The calling thread's end is to be told: it has something of the segment's.
/// @thread thread-safe, async-signal-safe
void watch_thread_exit();

/// Has the kernel turn off children that no handler of ours sees, from now on: before a process's first lane or open call.
/// @return whether this is such a child, made earlier
bool is_unseen_child();

}  // namespace ringside::inject
