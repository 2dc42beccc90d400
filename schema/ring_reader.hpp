// The consumer's end of a lane. The producer is another process and every word it wrote is hostile: positions are copied once,
// checked, and only the copies are used. Called by the agent's drainer.
#pragma once

#include <cstdint>

#include "schema/lane.hpp"
#include "schema/record.hpp"

namespace ringside::schema {

/// One piece of a lane that lies in one piece: the committed cells from the tail to the lane's end at most.
struct CellSpan {
    const Cell* cells = nullptr;
    std::uint32_t count = 0;     ///< 0: nothing committed, not an error
    std::uint64_t position = 0;  ///< of the first
    bool corrupt = false;        ///< positions fail the check: quarantine the lane
};

template <template <class> class Atomic>
class BasicRingReader {
public:
    BasicRingReader() = default;

    /// @param cells  capacity_cells of them as the *reader* has checked; a power of two
    /// @thread the lane's one consumer
    BasicRingReader(BasicLaneHeader<Atomic>* header, const Cell* cells,
                    std::uint32_t capacity_cells)
        : header_(header),
          cells_(cells),
          mask_(capacity_cells - 1),
          // SYNC(tail): goes on where the last agent stopped; pairs with its release in release().
          tail_(header->tail.load(std::memory_order_acquire)) {}

    /// What is committed and not yet released, up to the lane's end. Call again after release() for the rest.
    /// @errors corrupt: committed lies before the tail or more than the capacity after it
    CellSpan poll() const {
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
        // SYNC(free): the copies are made; pairs with the acquires in BasicRingWriter.
        header_->tail.store(tail_, std::memory_order_release);
    }

    std::uint64_t tail() const { return tail_; }

private:
    BasicLaneHeader<Atomic>* header_ = nullptr;
    const Cell* cells_ = nullptr;
    std::uint64_t mask_ = 0;
    std::uint64_t tail_ = 0;
};

using RingReader = BasicRingReader<std::atomic>;

}  // namespace ringside::schema
