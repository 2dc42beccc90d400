// A lane: the single-producer single-consumer ring of one thread. Its header page, then its rings, each twice the one before; it starts in the
// first, and where that is full and the consumer late goes on in the next, at the same position (ring_writer.hpp).
//
//   line 0    producer   committed u64, dropped u64, first and last drop's ticks u64, records u64; open depth u32
//   line 1    consumer   tail u64
//   line 2    producer   tid u32, state and generation u32, capacity of the first ring u32, ring in use u32, thread name 32
//   line 3    producer   context: key u64, trace id 16, span u64, state u32; too deep u64
//   4 ..35    producer   open stack: 64 x 32 B (begin u64, key u64, argument u64, name u32, kind u16, flags u8)
//   36..38    producer   rings: 12 x 16 B (first position u64, real cells u64)
//
// Positions count cells, never wrap, never restart (a recycled lane goes on where the last thread stopped). A record lies in one
// piece: where it would wrap, a Pad record fills the rest. The names of the memory orders' partners are SYNC tags.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "schema/record.hpp"
#include "schema/units.hpp"

namespace ringside::schema {

inline constexpr std::uint32_t kOpenStackDepth = 64;
inline constexpr std::uint32_t kThreadNameBytes = 32;

/// A range that has begun and not ended. Relaxed words: the reader copies an entry twice and takes it when both copies agree.
struct OpenEntry {
    std::atomic<std::uint64_t> begin;
    std::atomic<std::uint64_t> key;  ///< the framework's handle of the range; 0: none
    std::atomic<std::uint64_t> argument;
    std::atomic<std::uint64_t> what;  ///< a record header: kind, flags, name
};
static_assert(sizeof(OpenEntry) == kCellBytes);

enum class LaneState : std::uint32_t { kFree = 0, kUsed = 1, kReleased = 2 };

/// Lane state in the low two bits, generation above.
constexpr std::uint32_t pack_lane_state(LaneState state, std::uint32_t generation) {
    return static_cast<std::uint32_t>(state) | generation << 2;
}
constexpr LaneState lane_state(std::uint32_t word) {
    return static_cast<LaneState>(word & 3);
}
constexpr std::uint32_t lane_generation(std::uint32_t word) {
    return word >> 2;
}

/// Which request a lane serves.
enum class ContextState : std::uint32_t { kNone = 0, kServing = 1, kUnknown = 2 };

template <template <class> class Atomic>
struct BasicLaneHeader {
    // line 0: the producer's
    alignas(64) Atomic<std::uint64_t> committed;  ///< SYNC(commit)
    Atomic<std::uint64_t> dropped;                ///< records, not cells
    Atomic<std::uint64_t> first_drop_ticks;
    Atomic<std::uint64_t> last_drop_ticks;
    Atomic<std::uint64_t>
        records;  ///< written into the ring by all generations: kept + lost after it
    Atomic<std::uint32_t>
        open_depth;  ///< may exceed kOpenStackDepth: deeper ranges are counted, not kept
    std::uint32_t reserved1;
    // line 1: the consumer's
    alignas(64) Atomic<std::uint64_t> tail;  ///< SYNC(free)
    // line 2: the producer's, cold
    alignas(64) Atomic<std::uint32_t> tid;
    Atomic<std::uint32_t> state;           ///< pack_lane_state; SYNC(lane)
    Atomic<std::uint32_t> capacity_cells;  ///< of the first ring; a power of two
    Atomic<std::uint32_t> ring;            ///< which one the thread writes into; SYNC(ring)
    Atomic<std::uint64_t> thread_name[kThreadNameBytes / 8];  ///< NUL-padded bytes
    // line 3: the producer's
    alignas(64) Atomic<std::uint64_t> context_key;
    Atomic<std::uint64_t> context_trace_hi;
    Atomic<std::uint64_t> context_trace_lo;
    Atomic<std::uint64_t> context_span;
    Atomic<std::uint32_t> context_state;
    std::uint32_t reserved2;
    Atomic<std::uint64_t> too_deep;  ///< ranges that found the stack full
};

inline constexpr std::uint32_t kMostRings = 12;

/// One ring of a lane. Written by the producer; the consumer takes back the memory of one that it has left behind.
template <template <class> class Atomic>
struct BasicLaneRing {
    Atomic<std::uint64_t>
        from;  ///< the first position in it, since the thread before left the lane
    Atomic<std::uint64_t> real_cells;  ///< whose memory counts as the process's; 0: none
};

/// Cells of ring `ring`, and of all rings before it.
constexpr std::uint64_t ring_cells(std::uint32_t first_cells, std::uint32_t ring) {
    return std::uint64_t{first_cells} << ring;
}
constexpr std::uint64_t ring_offset(std::uint32_t first_cells, std::uint32_t ring) {
    return ring_cells(first_cells, ring) - first_cells;
}

/// Where a lane's cells lie. With one ring `rings` may be null.
template <template <class> class Atomic, class CellType>
struct BasicLaneRoom {
    CellType* cells = nullptr;
    std::uint32_t first_cells = 0;  ///< a power of two
    std::uint32_t ring_count = 1;
    BasicLaneRing<Atomic>* rings = nullptr;
};

struct LaneHeader : BasicLaneHeader<std::atomic> {
    alignas(64) OpenEntry open[kOpenStackDepth];
    BasicLaneRing<std::atomic> rings[kMostRings];
    std::uint8_t reserved[kPageBytes - 4 * 64 - kOpenStackDepth * sizeof(OpenEntry) -
                          kMostRings * sizeof(BasicLaneRing<std::atomic>)];
};
static_assert(sizeof(LaneHeader) == kPageBytes);
static_assert(sizeof(BasicLaneHeader<std::atomic>) == 256);

}  // namespace ringside::schema
