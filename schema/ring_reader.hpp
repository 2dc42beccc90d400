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
    using Room = BasicLaneRoom<Atomic, const CellType>;

    BasicRingReader() = default;

    /// @param room  as the *reader* has checked it
    /// @thread the lane's one consumer
    BasicRingReader(BasicLaneHeader<Atomic>* header, const Room& room)
        : header_(header),
          room_(room),
          // SYNC(tail): goes on where the last agent stopped, and frees what that one has copied; pairs with its release in release_to().
          tail_(header->tail.load(std::memory_order_acquire)),
          position_(tail_),
          ring_(ring_at(tail_)),
          newest_(ring_) {}

    /// What is committed and not yet taken, up to the end of a ring. Call again after take() or release() for the rest.
    /// @errors corrupt: committed lies before what was taken or more than the capacity after the tail; rings that the lane has not, or that
    /// begin elsewhere
    BasicCellSpan<CellType> poll() {
        // SYNC(commit): the cells are whole; pairs with the release in BasicRingWriter::commit.
        const std::uint64_t committed = header_->committed.load(std::memory_order_acquire);
        std::uint64_t available = committed - position_;
        if (room_.ring_count > 1 && !follow(available)) return {nullptr, 0, position_, true};
        const std::uint64_t mask = ring_cells(room_.first_cells, ring_) - 1;
        const std::uint64_t held = position_ - tail_;
        if (held > capacity_cells() || (held <= mask && available > mask + 1 - held))
            return {nullptr, 0, position_, true};
        const std::uint64_t offset = position_ & mask;
        const std::uint64_t to_end = mask + 1 - offset;
        return {room_.cells + ring_offset(room_.first_cells, ring_) + offset,
                static_cast<std::uint32_t>(available < to_end ? available : to_end), position_,
                false};
    }

    /// Reads on behind `count` cells that still are the reader's: a successor would find them again.
    void take(std::uint32_t count) { position_ += count; }
    /// Reads on at `position`, which was taken by a reader before this one.
    void skip_to(std::uint64_t position) {
        position_ = position;
        ring_ = ring_at(position);
    }

    /// Gives all cells before `position` back to the producer.
    /// @param position  tail() .. position()
    void release_to(std::uint64_t position) {
        tail_ = position;
        // SYNC(free): the copies are made; pairs with the acquire in BasicRingWriter::reserve.
        // SYNC(tail): so are those of the agents before; pairs with the acquire in the next one's constructor.
        header_->tail.store(tail_, std::memory_order_release);
    }
    /// Takes `count` cells and gives back all that was taken.
    void release(std::uint32_t count) {
        take(count);
        release_to(position_);
    }

    /// Has the lane's next thread begin in the first ring. Of a lane that is drained and has no thread.
    void start_small() {
        if (newest_ == 0) return;
        ring_ = newest_ = 0;
        // Relaxed: the next thread sees it with its claim, the next agent by the lock that it has taken.
        header_->ring.store(0, std::memory_order_relaxed);
    }

    /// Where the next poll() reads.
    std::uint64_t position() const { return position_; }
    /// The first cell that is not given back yet.
    std::uint64_t tail() const { return tail_; }
    /// The ring that the tail lies in: in those before it there is nothing any more.
    std::uint32_t ring_of_tail() const { return ring_ == 0 ? 0 : ring_at(tail_); }
    /// Of the ring that the last poll() found in use: no more can be unread, in all rings together.
    std::uint64_t capacity_cells() const { return ring_cells(room_.first_cells, newest_); }

private:
    /// Goes on in the ring that the position has come to, and cuts what is available at that ring's end.
    /// @return false: the words can't be right
    bool follow(std::uint64_t& available) {
        // SYNC(ring): where each ring up to this one begins is there; pairs with the release in BasicRingWriter::grow.
        const std::uint32_t newest = header_->ring.load(std::memory_order_acquire);
        if (newest < ring_ || newest >= room_.ring_count) return false;
        newest_ = newest;
        while (ring_ < newest) {
            const std::uint64_t left =
                room_.rings[ring_ + 1].from.load(std::memory_order_relaxed) - position_;
            if (left > ring_cells(room_.first_cells, ring_)) return false;
            if (left != 0) {
                if (available > left) available = left;
                return true;
            }
            ++ring_;
        }
        return true;
    }

    /// Which ring a position lies in: the last that begins at or before it.
    std::uint32_t ring_at(std::uint64_t position) const {
        if (room_.ring_count < 2) return 0;
        // SYNC(ring): as in follow(); what the last agent released it had seen the beginning of.
        std::uint32_t ring = header_->ring.load(std::memory_order_acquire);
        if (ring >= room_.ring_count) return 0;
        while (ring > 0 && room_.rings[ring].from.load(std::memory_order_relaxed) > position)
            --ring;
        return ring;
    }

    BasicLaneHeader<Atomic>* header_ = nullptr;
    Room room_;
    std::uint64_t tail_ = 0;      ///< as the producer sees it
    std::uint64_t position_ = 0;  ///< tail_ .. tail_ + the capacity
    std::uint32_t ring_ = 0;      ///< that position_ lies in
    std::uint32_t newest_ = 0;    ///< in use when last looked at
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
