// Collectives of all ranks, joined: which ranges are one collective, when each member arrived, who came last, and whether one rank of a group makes the
// others wait so often and so long that it is no chance.
//
//   rank 0   |=================|        a collective = (group, sequence)
//   rank 1       |=============|        arrival = a range's begin
//   rank 2   .          |======|        last: when it came beyond the clocks' bound after the last but one (gap)
//            |<- wait ->|<work>|
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "viewer_export/model/call_times.hpp"
#include "viewer_export/model/job.hpp"

namespace ringside::viewer_export::model {

/// A range of one process that is its part in a collective.
struct Arrival {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    std::int64_t
        own_ns;  ///< of its own time before it: since the process was last in a collective, less what it was in other calls
                 ///< of MPI; -1: unknown, as it is the first one
    Index process;
    std::int32_t rank;  ///< in the group, else in the job; -1: unknown
    Index name;
    Index lane;   ///< whose range; kNone: an asynchronous one
    Index event;  ///< in the lane's ranges, or Job::asyncs
    End end;
};

struct Collective {
    std::uint64_t sequence;
    Index group;          ///< Collectives::groups
    Index name;           ///< of most of its members
    std::uint32_t first;  ///< Collectives::arrivals: from here on, `count` of them, by begin
    std::uint32_t count;
    std::int64_t gap_ns = 0;    ///< between the last arrival and the last but one
    std::int64_t bound_ns = 0;  ///< of their two clocks
    bool complete = false;      ///< all members of the group are here, so that there is a last one
    bool last_known = false;    ///< complete, and the gap is beyond the bound
    bool names_differ = false;
};

/// Of a member of a group, over all its complete collectives.
struct MemberSums {
    Index process;
    std::int32_t rank;
    std::uint64_t last = 0;    ///< how often it came last
    std::int64_t wait_ns = 0;  ///< that all others waited for it then, added up
};

enum class Late : std::uint8_t {
    kNamed,
    kIncomplete,  ///< no collective has all its members in the dumps
    kAlone,       ///< a group of one
    kClocks,      ///< of most the clocks can't tell who was last
    kChance,      ///< nobody is last more often than chance would have it
    kSmall,       ///< the others hardly wait
    kCameOut,  ///< it comes late out of the collective before: its own time is not longer than the others'
};

/// Whether a rank of a group is late, and the numbers that say so.
struct LateRank {
    Late verdict = Late::kIncomplete;
    std::size_t member = 0;  ///< CollectiveGroup::members: who was last most often
    std::uint64_t complete = 0;
    std::uint64_t undetermined = 0;  ///< of the complete ones
    std::uint64_t parts = 0;         ///< of the capture, each of as many of these
    std::uint64_t parts_last = 0;    ///< in which it was last more often than any other
    std::int64_t gap_ns = 0;         ///< median, where it was last
    std::int64_t excess_ns =
        0;  ///< median, where it was last: its own time less the median of the others'
    std::int64_t period_ns = 0;  ///< median between two of the group's collectives
};

struct CollectiveGroup {
    schema::SourceId source;
    std::string label;                ///< no two groups of a job have one
    std::uint64_t id;                 ///< 0: the dumps have no groups
    std::uint32_t size;               ///< members
    std::vector<MemberSums> members;  ///< that were seen, by rank
    LateRank late;
};

struct Collectives {
    std::vector<CollectiveGroup> groups;
    std::vector<Collective> all;  ///< by group and sequence
    std::vector<Arrival> arrivals;
    std::uint64_t unknown =
        0;  ///< ranges of collectives without a sequence number: joined with nothing

    bool empty() const { return all.empty() && unknown == 0; }
    const Arrival* begin(const Collective& of) const { return arrivals.data() + of.first; }
    const Arrival* end(const Collective& of) const { return begin(of) + of.count; }
    /// Who came last, where that is known.
    const Arrival* last(const Collective& of) const {
        return of.last_known ? end(of) - 1 : nullptr;
    }
    /// From the last arrival to the last end. @return none where someone has not come or not gone
    std::optional<std::int64_t> work_ns(const Collective& of) const;
    /// That the others waited for the last, added up. @return none where someone has not come
    std::optional<std::int64_t> wait_ns(const Collective& of) const;
    /// Ranks of the group that are not in it; none where ranks are unknown.
    std::vector<std::int32_t> missing(const Collective& of) const;
};

Collectives join_collectives(const Job& job);

/// @return the chance that of `trials`, each with `chance`, at least `hits` hit
double at_least(std::uint64_t hits, std::uint64_t trials, double chance);

}  // namespace ringside::viewer_export::model
