// When what was lost: an account knows how much a lane lost since it began, a capture that is cut out of a window must know how much of it
// falls into its range. Kept in memory for as long as the window reaches back.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "schema/ids.hpp"
#include "schema/segment.hpp"

namespace ringside::agent {

/// Records that one lane lost in one stretch of time.
struct LaneLoss {
    std::uint32_t process = 0;
    schema::LaneId lane;
    std::int32_t tid = 0;
    std::uint64_t records = 0;
    std::uint64_t first_ticks = 0;
    std::uint64_t last_ticks = 0;
};

/// A process's counters that only grow, as they stood at one instant.
struct ProcessCounters {
    std::array<std::uint64_t, schema::kLossCounters> losses{};
    std::uint64_t unknown_records = 0;
    bool operator==(const ProcessCounters&) const = default;
};

/// @thread one: the engine's lock guards it
class LossLog {
public:
    void add(const LaneLoss& loss) { lanes_.push_back(loss); }
    /// Notes a process's counters; a second note of the same values costs nothing.
    void note(std::uint32_t process, std::uint64_t now_ticks, const ProcessCounters& counters);

    /// What lanes lost in times that touch [start, stop].
    std::vector<LaneLoss> within(std::uint64_t start, std::uint64_t stop) const;
    /// A process's counters at an instant: the last note before it, else nothing: the window took it in later, and counts from then on.
    ProcessCounters at(std::uint32_t process, std::uint64_t ticks) const;

    /// Nobody will ask for what was before.
    void forget_before(std::uint64_t ticks);
    void forget(std::uint32_t process) { processes_.erase(process); }
    std::uint64_t lost_total() const;

private:
    struct Note {
        std::uint64_t ticks = 0;
        ProcessCounters counters;
    };
    std::deque<LaneLoss> lanes_;  ///< in the order of their notes
    std::map<std::uint32_t, std::deque<Note>> processes_;
};

}  // namespace ringside::agent
