// A thread's own RecordFunction callbacks, as torch hands them from thread to thread with the rest of a ThreadLocalState: autograd's engine takes that of
// its caller before each function of a backward pass, and puts its own back after it. Each time torch makes the lists of active callbacks of all scopes anew,
// under a lock, though nothing has changed: that is about a third of what being observed costs a small training step.
// So while a capture runs a call that changes nothing is left out: no callbacks of a thread on either side, and the same switch. Whoever has
// callbacks of a thread's own (torch.profiler) has every call as ever; of a change of the global ones torch learns by their version, at each range.
// Called by operators.
#pragma once

#include <cstdint>

#include "inject/sources/torch/abi.hpp"

namespace ringside::inject::torch {

/// torch's functions about the calling thread's callbacks; any may be null.
struct ThreadStateApi {
    const ThreadCallbacks* (*current)();
    void (*enable)(bool);
    std::uint64_t (*add_callback)(RecordFunctionCallback);
    void (*remove_callback)(std::uint64_t);
};

/// Whether ThreadCallbacks is what torch has: tried with `callback`, and the switch. Leaves everything as it was.
/// @thread one of ours, that has no callbacks of its own
bool thread_state_is_known(const ThreadStateApi& api, const RecordFunctionCallback& callback);

/// Whether to go from one to the other changes nothing.
bool is_no_change(const ThreadCallbacks& current, const ThreadCallbacks& next);

/// Finds the slots.
/// @param api  of which thread_state_is_known()
/// @return whether there are any
/// @thread as prepare_operators()
bool prepare_thread_state(const ThreadStateApi& api);

/// Only where prepare_thread_state() has found slots.
/// @thread as prepare_operators()
void attach_thread_state();
/// Writes the originals back.
/// @thread as prepare_operators()
void detach_thread_state();

}  // namespace ringside::inject::torch
