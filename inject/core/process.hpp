// What the whole process shares: where the capture word is, the segment's header, the clock. Valid from the first instruction on: until
// a segment is mapped the word is a constant zero (off) and the header a private page, so that no hook ever tests a pointer.
// Used by everything in core/; the sources see it through emit.hpp alone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "schema/control_page.hpp"
#include "schema/segment.hpp"
#include "schema/ticks.hpp"

namespace ringside::inject {

struct ProcessState {
    // SYNC(mapped): stored with release when header, base and clock are set; pairs with the acquire in capture_word().
    std::atomic<const std::atomic<std::uint32_t>*> word;
    schema::SegmentHeader* header;       ///< never null
    std::byte* base;                     ///< of the segment; null: none
    const schema::ControlPage* control;  ///< never null; all zero where there is none
    schema::TicksSource ticks_source;
};

/// The one of this process.
extern ProcessState g_process;

/// The capture word, off where nothing is mapped.
/// @thread thread-safe, async-signal-safe
inline std::uint32_t capture_word() {
    // SYNC(mapped): pairs with the release in set_segment(); an ordinary load on x86-64.
    return g_process.word.load(std::memory_order_acquire)->load(std::memory_order_relaxed);
}

/// Puts the segment and the control page in place of the private pages, or (nulls) the private pages back.
/// @thread main thread, no hook running: the constructor, or a forked child before anything else
void set_segment(std::byte* base, const schema::ControlPage* control);

/// Whether a segment is mapped.
inline bool has_segment() {
    return g_process.base != nullptr;
}

}  // namespace ringside::inject
