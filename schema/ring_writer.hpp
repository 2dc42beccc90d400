// The producer's end of a lane: reserve, fill, commit; and grow, where it is full. One source of it for std::atomic and for the model checker of tests/proof (the
// template parameters), so that what is proved is what runs. Called from hooks: never blocks, never allocates.
#pragma once

#include <cstdint>

#include "schema/lane.hpp"
#include "schema/record.hpp"
#include "schema/ticks.hpp"

namespace ringside::schema {

template <template <class> class Atomic, class CellType = Cell>
class BasicRingWriter {
public:
    BasicRingWriter() = default;

    /// Goes on where the lane stands.
    /// @param room  its first ring has at least 2 x kMaxRecordCells
    /// @thread the lane's one producer, which has made the lane or claimed it (lane_life.hpp)
    BasicRingWriter(BasicLaneHeader<Atomic>* header, const BasicLaneRoom<Atomic, CellType>& room)
        : header_(header),
          cells_(ring_of(*header, room)),
          mask_(ring_cells(room.first_cells, ring_index(*header, room)) - 1),
          // Relaxed: the claim of the lane has brought what the consumer did before it gave the lane back.
          position_(header->committed.load(std::memory_order_relaxed)),
          free_end_(position_) {}

    /// Room for `count` cells in one piece; a Pad record fills the lane's end where they would wrap.
    /// @param count  1 .. 2 x kMaxRecordCells (a NameInline and the record it names go as one)
    /// @return null when the lane is full: call drop(). Nothing is visible to the reader until commit().
    CellType* reserve(std::uint32_t count) {
        const std::uint64_t offset = position_ & mask_;
        const std::uint64_t to_end = mask_ + 1 - offset;
        const std::uint64_t needed = count <= to_end ? count : to_end + count;
        if (position_ + needed > free_end_) [[unlikely]] {
            // SYNC(free): what the consumer has freed may be overwritten; pairs with the release in BasicRingReader::release_to.
            const std::uint64_t tail = header_->tail.load(std::memory_order_acquire);
            if (position_ + needed - tail > mask_ + 1 || tail > position_) return nullptr;
            free_end_ = tail + mask_ + 1;
        }
        if (count > to_end) [[unlikely]] {
            // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a writer without a lane is not asked for room
            cells_[offset].words[0] =
                RecordHeader{RecordKind::kPad, static_cast<std::uint8_t>(to_end), 0, kNoName}
                    .pack();
            position_ += to_end;
            return cells_;
        }
        return cells_ + offset;
    }

    /// Publishes the cells last reserved.
    /// @param records  how many records they hold (a NameInline is none of its own)
    void commit(std::uint32_t count, std::uint32_t records = 1) {
        commit_at(header_, position_, count, records);
    }
    /// commit() for who has header() and position() at hand: behind an atomic access the compiler would load them again.
    void commit_at(BasicLaneHeader<Atomic>* header, std::uint64_t position, std::uint32_t count,
                   std::uint32_t records = 1) {
        const std::uint64_t end = position + count;
        position_ = end;
        header->records.store(header->records.load(std::memory_order_relaxed) + records,
                              std::memory_order_relaxed);
        // SYNC(commit): publishes the cells; pairs with the acquire in BasicRingReader::poll.
        header->committed.store(end, std::memory_order_release);
    }

    /// Counts a record that found no room.
    void drop(Ticks now, std::uint32_t records = 1) {
        const std::uint64_t dropped = header_->dropped.load(std::memory_order_relaxed);
        if (dropped == 0) header_->first_drop_ticks.store(now.value, std::memory_order_relaxed);
        header_->last_drop_ticks.store(now.value, std::memory_order_relaxed);
        // SYNC(drop): the interval is there before the count that tells of it; pairs with the acquires in load_drops() and look_at_lane().
        header_->dropped.store(dropped + records, std::memory_order_release);
    }

    /// Goes on in the lane's next ring, which is empty: what is unread stays where it is, and no position is left out.
    /// @param room  its next ring's memory is there
    void grow(const BasicLaneRoom<Atomic, CellType>& room) {
        const std::uint32_t next = header_->ring.load(std::memory_order_relaxed) + 1;
        room.rings[next].from.store(position_, std::memory_order_relaxed);
        // SYNC(ring): where it begins is there before it; pairs with the acquires in BasicRingReader.
        header_->ring.store(next, std::memory_order_release);
        cells_ = room.cells + ring_offset(room.first_cells, next);
        mask_ = ring_cells(room.first_cells, next) - 1;
    }

    std::uint64_t position() const { return position_; }
    /// Cells before this position are known to be free: one that begins there needs no reserve(), next_cell() is its place.
    std::uint64_t free_end() const { return free_end_; }
    /// Whether so many from there on do not wrap.
    bool in_one_piece(std::uint32_t count) const {
        return (position_ & mask_) + count <= mask_ + 1;
    }
    CellType* next_cell() const { return cells_ + (position_ & mask_); }
    BasicLaneHeader<Atomic>* header() const { return header_; }

private:
    static std::uint32_t ring_index(const BasicLaneHeader<Atomic>& header,
                                    const BasicLaneRoom<Atomic, CellType>& room) {
        // Relaxed, like the others in the constructor. One ring alone has no other, whatever an older layout left there.
        return room.ring_count > 1 ? header.ring.load(std::memory_order_relaxed) : 0;
    }
    static CellType* ring_of(const BasicLaneHeader<Atomic>& header,
                             const BasicLaneRoom<Atomic, CellType>& room) {
        return room.cells + ring_offset(room.first_cells, ring_index(header, room));
    }

    BasicLaneHeader<Atomic>* header_ = nullptr;
    CellType* cells_ = nullptr;  ///< of the ring in use
    std::uint64_t mask_ = 0;
    std::uint64_t position_ = 0;
    std::uint64_t free_end_ =
        0;  ///< moves only when the lane seems full: the tail is not read before
};

using RingWriter = BasicRingWriter<std::atomic>;

}  // namespace ringside::schema
