// The consumer's end of a lane. The producer is another process and every word it wrote is hostile: positions are copied once,
// checked, and only the copies are used. Called by the agent's drainer.
#pragma once

#include <cstdint>

#include "schema/lane.hpp"
#include "schema/record.hpp"

namespace ringside::schema {

/// One piece of a lane that lies in one piece: the committed cells from the tail to the lane's end at most.
template <class CellType>
struct BasicCellSpan {
    const CellType* cells = nullptr;
    std::uint32_t count = 0;     ///< 0: nothing committed, not an error
    std::uint64_t position = 0;  ///< of the first
    bool corrupt = false;        ///< positions fail the check: quarantine the lane
};
using CellSpan = BasicCellSpan<Cell>;

template <template <class> class Atomic, class CellType = Cell>
class BasicRingReader {
public:
    BasicRingReader() = default;

    /// @param cells  capacity_cells of them as the *reader* has checked; a power of two
    /// @thread the lane's one consumer
    BasicRingReader(BasicLaneHeader<Atomic>* header, const CellType* cells,
                    std::uint32_t capacity_cells)
        : header_(header),
          cells_(cells),
          mask_(capacity_cells - 1),
          // SYNC(tail): goes on where the last agent stopped, and frees what that one has copied; pairs with its release in release().
          tail_(header->tail.load(std::memory_order_acquire)) {}

    /// What is committed and not yet released, up to the lane's end. Call again after release() for the rest.
    /// @errors corrupt: committed lies before the tail or more than the capacity after it
    BasicCellSpan<CellType> poll() const {
        // SYNC(commit): the cells are whole; pairs with the release in BasicRingWriter::commit.
        const std::uint64_t committed = header_->committed.load(std::memory_order_acquire);
        const std::uint64_t available = committed - tail_;
        if (available > mask_ + 1) return {nullptr, 0, tail_, true};
        const std::uint64_t offset = tail_ & mask_;
        const std::uint64_t to_end = mask_ + 1 - offset;
        return {cells_ + offset,
                static_cast<std::uint32_t>(available < to_end ? available : to_end), tail_, false};
    }

    /// Gives `count` cells back to the producer.
    void release(std::uint32_t count) {
        tail_ += count;
        // SYNC(free): the copies are made; pairs with the acquire in BasicRingWriter::reserve.
        // SYNC(tail): so are those of the agents before; pairs with the acquire in the next one's constructor.
        header_->tail.store(tail_, std::memory_order_release);
    }

    std::uint64_t tail() const { return tail_; }

private:
    BasicLaneHeader<Atomic>* header_ = nullptr;
    const CellType* cells_ = nullptr;
    std::uint64_t mask_ = 0;
    std::uint64_t tail_ = 0;
};

/// What found no room in a lane.
struct Drops {
    std::uint64_t count = 0;  ///< records of all generations
    std::uint64_t first_ticks = 0;
    std::uint64_t last_ticks = 0;  ///< of the count-th or a later one
};

/// @thread any
template <template <class> class Atomic>
Drops load_drops(const BasicLaneHeader<Atomic>& header) {
    Drops drops;
    // SYNC(drop): the interval is there before the count; pairs with the release in BasicRingWriter::drop.
    drops.count = header.dropped.load(std::memory_order_acquire);
    drops.first_ticks = header.first_drop_ticks.load(std::memory_order_relaxed);
    drops.last_ticks = header.last_drop_ticks.load(std::memory_order_relaxed);
    return drops;
}

using RingReader = BasicRingReader<std::atomic>;

}  // namespace ringside::schema
