// How a lane changes hands. With the ring's two ends (ring_writer.hpp, ring_reader.hpp) this is all that the shim and the agent agree on
// without a lock; one source for std::atomic and for the model checker of tests/proof.
//
//   Free --claim_lane: a thread--> Used --release_lane: it ends--> Released --recycle_lane: the agent, once it is drained--> Free
//
// Each claim is a generation. Whoever claims sees all that the thread before wrote and the agent freed: positions and counts go on.
#pragma once

#include <cstdint>

#include "schema/lane.hpp"
#include "schema/ring_reader.hpp"

namespace ringside::schema {

/// @return false: it is not Free, or another thread was faster
/// @thread any of the process; the lane's one producer from then on
template <template <class> class Atomic>
bool claim_lane(BasicLaneHeader<Atomic>& header) {
    std::uint32_t state = header.state.load(std::memory_order_relaxed);
    if (lane_state(state) != LaneState::kFree) return false;
    const std::uint32_t used = pack_lane_state(LaneState::kUsed, lane_generation(state) + 1);
    // SYNC(lane): the agent has drained it, and through it what the thread before wrote; pairs with the release in recycle_lane().
    return header.state.compare_exchange_strong(state, used, std::memory_order_acquire,
                                                std::memory_order_relaxed);
}

/// The thread ends: nothing is written into the lane after this.
/// @thread the lane's one producer
template <template <class> class Atomic>
void release_lane(BasicLaneHeader<Atomic>& header) {
    const std::uint32_t generation = lane_generation(header.state.load(std::memory_order_relaxed));
    // SYNC(lane): the thread's last record is committed and its last drop counted; pairs with the acquire in look_at_lane().
    header.state.store(pack_lane_state(LaneState::kReleased, generation),
                       std::memory_order_release);
}

/// Gives a Released lane back that is drained and whose totals are taken. The next thread starts in the first ring again.
/// @param state  as it was looked at
/// @thread the lane's one consumer
template <template <class> class Atomic, class CellType>
void recycle_lane(BasicLaneHeader<Atomic>& header, BasicRingReader<Atomic, CellType>& reader,
                  std::uint32_t state) {
    reader.start_small();
    // SYNC(lane): nothing of the thread before is wanted any more; pairs with the acquire in claim_lane().
    header.state.store(pack_lane_state(LaneState::kFree, lane_generation(state)),
                       std::memory_order_release);
}

/// What the consumer sees of a lane in one look.
template <class CellType>
struct BasicLaneLook {
    std::uint32_t state = 0;
    std::uint64_t dropped = 0;
    BasicCellSpan<CellType> span;
};
using LaneLook = BasicLaneLook<Cell>;

/// Where the state is Released and the span empty, the lane is drained and `dropped` is final. Copy the cells, then ask changed_hands().
/// @thread the lane's one consumer
template <template <class> class Atomic, class CellType>
BasicLaneLook<CellType> look_at_lane(const BasicLaneHeader<Atomic>& header,
                                     BasicRingReader<Atomic, CellType>& reader) {
    BasicLaneLook<CellType> look;
    // SYNC(lane): a thread that released its lane wrote all of its records before; pairs with the release in release_lane().
    look.state = header.state.load(std::memory_order_acquire);
    // SYNC(drop): who counts a drop has claimed the lane before, as changed_hands() sees; pairs with the release in BasicRingWriter::drop.
    look.dropped = header.dropped.load(std::memory_order_acquire);
    look.span = reader.poll();
    return look;
}

/// Whether some of what was looked at may be of a thread that has claimed the lane meanwhile: a Free lane may get its next one any time.
template <template <class> class Atomic, class CellType>
bool changed_hands(const BasicLaneHeader<Atomic>& header, const BasicLaneLook<CellType>& look) {
    // Relaxed: what is the next thread's was seen through an acquire (of a commit or a drop), and its claim comes before that.
    return lane_generation(header.state.load(std::memory_order_relaxed)) !=
           lane_generation(look.state);
}

}  // namespace ringside::schema
