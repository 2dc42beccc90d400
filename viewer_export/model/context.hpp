// Which request a lane serves, as time goes on: the switches of one lane, and the answer for any event of it. Filled by load/.
//
//   lane      ----[on key 7]------------[off]-----x drop x--[again: key 9]----
//   request   none|  the half with key 7 |  none |  unknown |  key 9
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "schema/lane.hpp"

namespace ringside::viewer_export::model {

/// What a lane serves from `ticks` on.
struct Context {
    schema::ContextState state = schema::ContextState::kNone;
    std::uint64_t key = 0;  ///< of the server half, where serving
    bool operator==(const Context&) const = default;
};

class ContextTrack {
public:
    /// The lane's context before its first switch.
    void set_initial(Context context) { initial_ = context; }
    /// From `ticks` on the lane serves `context`. Called in the order of the lane's positions.
    /// @param position  of the record that says so
    void switch_to(std::uint64_t ticks, std::uint64_t position, Context context);

    /// Gives the contexts of events asked for in the order of their begins: linear over a lane.
    class Cursor {
    public:
        explicit Cursor(const ContextTrack& track) : track_(&track) {}
        /// @param ticks     the event's begin; not less than that of the call before
        /// @param position  of its record; an event at a switch's own tick belongs to what stands on its side of the record
        Context at(std::uint64_t ticks, std::uint64_t position);

    private:
        const ContextTrack* track_;
        std::size_t next_ = 0;
    };

    /// tell(context, from_ticks, to_ticks) of each stretch in turn, those that say the same as one; the first begins at 0, the last ends at the greatest number.
    template <class To>
    void stretches(To&& tell) const {
        Context current = initial_;
        std::uint64_t from = 0;
        for (const Switch& next : switches_) {
            if (next.context == current) continue;
            tell(current, from, next.ticks);
            current = next.context;
            from = next.ticks;
        }
        tell(current, from, std::numeric_limits<std::uint64_t>::max());
    }

    /// The same for one event.
    Context at(std::uint64_t ticks, std::uint64_t position) const;

private:
    struct Switch {
        std::uint64_t ticks;
        std::uint64_t position;
        Context context;

        bool holds_for(std::uint64_t at, std::uint64_t record) const {
            return ticks < at || (ticks == at && position < record);
        }
    };
    Context before(std::size_t next) const {
        return next == 0 ? initial_ : switches_[next - 1].context;
    }

    Context initial_;
    std::vector<Switch> switches_;
};

}  // namespace ringside::viewer_export::model
