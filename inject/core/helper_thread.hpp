// The one thread that the shim runs in a process, and only where a framework is mapped: it waits on the capture word (a futex) and
// brings the sources along. RINGSIDE_THREAD=0 does without: then a change is acted on at the next dlopen() or dlsym().
#pragma once

namespace ringside::inject {

/// @thread main thread, at load
void allow_helper_thread(bool allowed);

/// Starts it where it is allowed and not running: all signals blocked, detached.
/// @thread thread-safe; may be called with the loader's lock held
void ensure_helper_thread();

/// Whether changes of the word are acted on without a call of ours.
bool has_helper_thread();

/// Objects have been loaded while a capture runs: the helper looks at them once the loader is idle.
/// @thread thread-safe
void wake_helper_thread();

/// Threads don't survive a fork: starts the child's own where the parent had one.
/// @thread the child's only one, after its segment was made
void restart_helper_thread_after_fork();

}  // namespace ringside::inject
