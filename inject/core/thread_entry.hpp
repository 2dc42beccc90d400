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

}  // namespace ringside::inject
