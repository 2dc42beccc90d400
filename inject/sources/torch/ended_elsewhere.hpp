// Ranges that another thread has ended: a TorchScript function that waited for a call goes on on the thread that answers, and the Future of
// record_function's _call_end_callbacks_on_future() ends a range of Python's. The thread that ends one leaves word here; the one on whose
// stack it lies looks at its next range, and until then it counts as open. Without this the stack would fill up with them.
#pragma once

#include "inject/core/emit.hpp"
#include "inject/sources/torch/range_access.hpp"

namespace ringside::inject::torch {

/// Another thread's range has ended now, if it is one of this capture. Word of at most 128 is kept; beyond that an older one is given up,
/// and counted (table full): its range stays open.
/// @thread thread-safe
void leave_word(std::uint64_t range);

/// Between two captures: words of ranges that began before the last one are nobody's.
/// @thread while no callback is registered
void forget_words();

extern __thread std::uint32_t t_words_seen __attribute__((tls_model("initial-exec")));

/// Ends those of this thread's open ranges of which there is word.
void take_words(ThreadLane& lane);

/// The same, where there is word that this thread has not looked at.
inline void end_what_ended_elsewhere(ThreadLane& lane) {
    // Most programs leave none: then nothing of the thread's is looked at.
    const std::uint32_t left = g_range.words_left.load(std::memory_order_relaxed);
    if (left != 0 && left != t_words_seen) [[unlikely]]
        take_words(lane);
}

}  // namespace ringside::inject::torch
