// Keys for ranges that a program pushes and pops: what is popped is the innermost one of its domain on this thread, and no handle names
// it. So its key is (domain, depth), and the depth is counted here, for pushes too that found the open stack full: their pops then find
// nothing and end nobody else's range.
#pragma once

#include <cstdint>

#include "inject/core/emit.hpp"
#include "schema/request_id.hpp"

namespace ringside::inject {

/// @param domain  any number that tells one domain of one source from the others; 0: none
/// @return the domain's counter, the same in all threads
/// @thread any
std::uint32_t push_counter(SourceId source, std::uint64_t domain);

/// @param domain  as for push_counter()
/// @return for ThreadLane::begin_range()
/// @thread inside a HookScope
std::uint64_t push_key(SourceId source, std::uint64_t domain);

/// @return for ThreadLane::end_range(); 0: what is popped was pushed before the capture
std::uint64_t pop_key(SourceId source, std::uint64_t domain);

// --- the way of most pushes and pops: no call is made, so that nothing has to be kept for one ---

/// Pushes a range without attributes.
/// @param counter  its domain's
/// @param word  the capture word, on
/// @param name  interned, not inline
/// @return false: nothing has been done; a HookScope is needed
[[gnu::always_inline]] inline bool push_at_once(SourceId source, std::uint32_t counter,
                                                std::uint32_t word, NameId name) {
    if (t_slot.word != word || !t_slot.wants(source)) [[unlikely]]
        return false;
    t_slot.word = ThreadSlot::kInside;
    // As HookScope: only a signal handler on this thread could come between.
    std::atomic_signal_fence(std::memory_order_acq_rel);
    const std::uint64_t key = t_slot.pushed.innermost[counter] + 1;
    const bool done = t_slot.lane.begin_plain({source, 0, name, key, 0});
    if (done) [[likely]]
        t_slot.pushed.innermost[counter] = key;
    std::atomic_signal_fence(std::memory_order_acq_rel);
    t_slot.word = word;
    return done;
}

/// As push_at_once(), for a text that g_address_cache does not have; in whatever way it takes.
void push_new_name(SourceId source, const char* text);

/// Pops what push_at_once() pushed, where it is the thread's innermost range.
[[gnu::always_inline]] inline bool pop_at_once(SourceId source, std::uint32_t counter,
                                               std::uint32_t word) {
    if (t_slot.word != word || !t_slot.wants(source)) [[unlikely]]
        return false;
    t_slot.word = ThreadSlot::kInside;
    std::atomic_signal_fence(std::memory_order_acq_rel);
    // Where none is open the key is no range's.
    const std::uint64_t key = t_slot.pushed.innermost[counter];
    const bool done = t_slot.lane.end_plain(key);
    if (done) [[likely]]
        t_slot.pushed.innermost[counter] = key - 1;
    std::atomic_signal_fence(std::memory_order_acq_rel);
    t_slot.word = word;
    return done;
}

}  // namespace ringside::inject
