// Keys for ranges that a program pushes and pops: what is popped is the innermost one of its domain on this thread, and no handle names
// it. So its key is (domain, depth), and the depth is counted here, for pushes too that found the open stack full: their pops then find
// nothing and end nobody else's range.
#pragma once

#include <cstdint>

#include "inject/core/emit.hpp"
#include "schema/request_id.hpp"

namespace ringside::inject {

/// The depths of one thread: a counter for each source's ranges without a domain, and one for each domain of the process, as they come.
/// Domains beyond those share a few counters: their ranges are then told apart only where they nest.
struct PushDepths {
    static constexpr std::uint32_t kOwn = 72;
    static constexpr std::uint32_t kShared = 8;
    static constexpr std::uint32_t kCounters = schema::kSourceCount + kOwn + kShared;
    /// No address of user space: those are the keys of other sources.
    static constexpr std::uint64_t kTag = 0x5055ull << 48;

    std::uint32_t word;     ///< the capture word that they were counted under
    std::uint32_t sources;  ///< those that this capture wants, a bit each
    std::uint16_t depth[kCounters];

    /// The counter of a source's ranges without a domain.
    static constexpr std::uint32_t no_domain(SourceId source) {
        return static_cast<std::uint32_t>(source);
    }
    static constexpr std::uint64_t key_of(std::uint32_t counter, std::uint16_t depth) {
        return kTag | static_cast<std::uint64_t>(counter) << 16 | depth;
    }
};
extern __thread PushDepths t_push_depths
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

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

/// Whether this thread may record for `source` at once: a hook would find its lane, and the capture wants the source.
[[gnu::always_inline]] inline bool enters_at_once(const ThreadSlot& slot, SourceId source,
                                                  std::uint32_t word) {
    return slot.word == word && slot.inside == 0 && t_push_depths.word == word &&
           (t_push_depths.sources >> static_cast<std::uint32_t>(source) & 1) != 0;
}

/// Pushes a range without attributes.
/// @param counter  its domain's
/// @param word  the capture word, on
/// @param name  interned, not inline
/// @return false: nothing has been done; a HookScope is needed
[[gnu::always_inline]] inline bool push_at_once(SourceId source, std::uint32_t counter,
                                                std::uint32_t word, NameId name) {
    ThreadSlot& slot = t_slot;
    if (!enters_at_once(slot, source, word)) [[unlikely]]
        return false;
    slot.inside = 1;
    // As HookScope: only a signal handler on this thread could come between.
    std::atomic_signal_fence(std::memory_order_acq_rel);
    ThreadLane& lane = *slot.lane;
    lane.fetch_ahead();
    const auto depth = static_cast<std::uint16_t>(t_push_depths.depth[counter] + 1);
    const bool done = lane.begin_plain({source, 0, name, PushDepths::key_of(counter, depth), 0});
    if (done) [[likely]]
        t_push_depths.depth[counter] = depth;
    std::atomic_signal_fence(std::memory_order_acq_rel);
    slot.inside = 0;
    return done;
}

/// As push_at_once(), for a text that g_name_cache.find_short() does not have; in whatever way it takes.
void push_new_name(SourceId source, const char* text);

/// Pops what push_at_once() pushed, where it is the thread's innermost range.
[[gnu::always_inline]] inline bool pop_at_once(SourceId source, std::uint32_t counter,
                                               std::uint32_t word) {
    ThreadSlot& slot = t_slot;
    if (!enters_at_once(slot, source, word)) [[unlikely]]
        return false;
    slot.inside = 1;
    std::atomic_signal_fence(std::memory_order_acq_rel);
    const std::uint16_t depth = t_push_depths.depth[counter];
    const bool done = depth != 0 && slot.lane->end_plain(PushDepths::key_of(counter, depth));
    if (done) [[likely]]
        t_push_depths.depth[counter] = static_cast<std::uint16_t>(depth - 1);
    std::atomic_signal_fence(std::memory_order_acq_rel);
    slot.inside = 0;
    return done;
}

}  // namespace ringside::inject
