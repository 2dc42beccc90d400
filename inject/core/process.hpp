// What the whole process shares: where the capture word is, the segment's header, the clock. Valid from the first instruction on: until
// a segment is mapped the word is a constant zero (off) and the header a private page, so that no hook ever tests a pointer.
// Used by everything in core/; the sources see it through emit.hpp alone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "schema/control_page.hpp"
#include "schema/open_calls.hpp"
#include "schema/segment.hpp"
#include "schema/ticks.hpp"

namespace ringside::inject {

struct ProcessState {
    schema::SegmentHeader* header;       ///< never null: a mapping of its own page alone
    std::atomic<std::byte*> base;        ///< of the whole segment; null: not mapped yet, or none
    const schema::ControlPage* control;  ///< never null; all zero where there is none
    schema::TicksSource ticks_source;
};

/// The one of this process.
extern ProcessState g_process;

/// What stands in for the header while there is no segment.
extern schema::SegmentHeader g_spare_header;

/// A word that is always off.
extern const std::atomic<std::uint32_t> kOffWord;

/// A page that the kernel empties in a child that has its memory copied, however it was made: also by a clone() or _Fork() that runs no handler
/// of ours. Such a child is off from its first instruction on, so that there are never two writers in one ring.
struct alignas(schema::kPageBytes) LivingPage {
    // Where the capture word is, as a distance from kOffWord in bytes: 0 is "off".
    /// SYNC(mapped): stored with release when header, base and clock are set; pairs with the acquire in capture_word_address().
    std::atomic<std::intptr_t> word_distance;
    /// A copy of the capture word while it is on and the helper thread watches for its end; else 0.
    std::atomic<std::uint32_t> watched_word;
    /// Of the segment, once it is real; null: not yet, or never (open_calls.hpp).
    std::atomic<schema::OpenCallsPage*> open_calls;
};
extern LivingPage g_living;

/// Where the capture word is now: in the control page, or one that is always off.
/// @thread thread-safe, async-signal-safe
inline const std::atomic<std::uint32_t>* capture_word_address() {
    // SYNC(mapped): pairs with the release in set_segment(); an ordinary load on x86-64.
    const std::intptr_t distance = g_living.word_distance.load(std::memory_order_acquire);
    return reinterpret_cast<const std::atomic<std::uint32_t>*>(
        reinterpret_cast<std::intptr_t>(&kOffWord) + distance);
}

/// The capture word, off where nothing is mapped.
/// @thread thread-safe, async-signal-safe
inline std::uint32_t capture_word() {
    return capture_word_address()->load(std::memory_order_relaxed);
}

/// Whether nothing can be on: no segment, or a child that no handler of ours saw, made after its parent's first lane.
inline bool is_off_for_good() {
    return capture_word_address() == &kOffWord;
}

/// Whether the segment is this process's own, and not that of a parent whose child no handler of ours saw.
bool is_segments_process();

/// Puts the segment's header and the control page in place of the private pages, or (nulls) the private pages back. The whole segment
/// is as its caller has set it.
/// @thread main thread, no hook running: the constructor, or a forked child before anything else
void set_segment(schema::SegmentHeader* header, const schema::ControlPage* control);

/// Has the kernel empty the living page in children from now on. Before 4.14 it can't: there only fork() and vfork() are safe.
/// @thread thread-safe, async-signal-safe
void empty_living_page_in_children();

/// Whether there is a segment; what lies behind its header is mapped at the first need (map_whole_segment()).
inline bool has_segment() {
    return g_process.header != &g_spare_header;
}

/// Where the segment begins; its header is there, too. Only where map_whole_segment() was successful: with a lane, or an id of a name.
/// @thread thread-safe, async-signal-safe
inline std::byte* segment_base() {
    return g_process.base.load(std::memory_order_relaxed);
}

}  // namespace ringside::inject
