// What a lane wrote and what became of it, and the instant a capture keeps: shared words of the drain side.
#pragma once

#include <cstdint>

#include "schema/ids.hpp"

namespace ringside::agent {

/// Between two looks: more than a lane's thread can drop in days. Sums of such numbers would wrap.
inline constexpr std::uint64_t kMostDrops = 1ull << 48;

/// Which records a capture keeps, by their begin: start <= begin <= stop.
struct TickRange {
    std::uint64_t start = ~0ull;  ///< ~0 until the instant is agreed: everything is outside
    std::uint64_t stop = ~0ull;
    bool contains(std::uint64_t begin) const {
        return start <= stop && begin - start <= stop - start;
    }
};

/// Records lost in one stretch of time.
struct LossSpan {
    std::uint64_t records = 0;
    std::uint64_t first_ticks = 0;
    std::uint64_t last_ticks = 0;

    void add(std::uint64_t more, std::uint64_t first, std::uint64_t last) {
        if (records == 0 || first < first_ticks) first_ticks = first;
        if (last > last_ticks) last_ticks = last;
        records += more;
    }
};

/// One thread's turn on a lane, in one capture. written = kept + outside + lost, by construction: each delivered record is put into
/// exactly one of kept and outside, kept ones move to lost where the sink refuses them, and what was never delivered is lost.
struct LaneAccount {
    schema::LaneId lane;
    std::int32_t tid = 0;
    std::uint64_t kept = 0;
    std::uint64_t outside = 0;
    std::uint64_t lost = 0;
    std::uint64_t first_lost_ticks = 0;
    std::uint64_t last_lost_ticks = 0;
    LossSpan recent;  ///< what was lost since somebody took note of it

    std::uint64_t written() const { return kept + outside + lost; }
    void lose(std::uint64_t records, std::uint64_t first, std::uint64_t last) {
        if (records == 0) return;
        if (lost == 0 || first < first_lost_ticks) first_lost_ticks = first;
        if (last > last_lost_ticks) last_lost_ticks = last;
        lost += records;
        recent.add(records, first, last);
    }
};

/// What stands beside each block, so that whoever reads it can go on exactly where it ends: all up to the block's last position.
struct LaneTally {
    std::uint64_t records = kUnknown;  ///< written into the ring so far, by all threads' turns
    std::uint64_t dropped = 0;         ///< as the lane itself counts them, by all threads' turns
    std::uint64_t outside = 0;         ///< from here on: of this turn in this capture
    std::uint64_t lost = 0;
    std::uint64_t first_lost_ticks = 0;
    std::uint64_t last_lost_ticks = 0;

    static constexpr std::uint64_t kUnknown = ~0ull;
    bool operator==(const LaneTally&) const = default;
};

}  // namespace ringside::agent
