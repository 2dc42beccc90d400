// Who waits for whom at the capture's end, since when, and who never came: from what the processes' segments say of their open calls, so also where nothing
// was recorded. Ages are by each process's own clock: no two clocks are compared. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "viewer_export/model/job.hpp"

namespace ringside::viewer_export::model {

/// A healthy job always has some call open, for microseconds: only those open for longer than this count.
inline constexpr std::int64_t kLeastWaitNs = 1'000'000'000;

/// What a process does that others wait for.
enum class Standing : std::uint8_t {
    kInIt,       ///< it is in the same collective, not for long
    kElsewhere,  ///< it waits in another call
    kFree,       ///< alive, in no call that is known to wait
    kPassed,     ///< it has begun this collective, and is not seen in it
    kDied,       ///< it ended during the capture
    kNotSeen     ///< no process of the capture says that it is this one
};

/// A process's wait: its oldest open call in this place.
struct Waiting {
    Index process = kNone;
    OpenCall call;
    std::int64_t age_ns = 0;
};

/// Somebody others wait for.
struct Party {
    Standing standing = Standing::kNotSeen;
    Index process = kNone;     ///< kNone: not seen
    std::int32_t member = -1;  ///< rank in the group; -1: not of a collective
    std::int32_t job_rank = -1;
    std::uint64_t last = 0;   ///< in the group
    std::int64_t age_ns = 0;  ///< of its own wait: kInIt, kElsewhere
    OpenCall call;            ///< what it waits in: kInIt, kElsewhere
};

/// A collective that some members are in, or a call that waits for one process or for nobody in particular.
struct Wait {
    std::string function;
    schema::SourceId source = schema::SourceId::kNone;
    std::uint64_t group = 0;
    std::string label;  ///< of the group; empty: none
    std::uint32_t size = 0;
    std::uint64_t sequence = 0;  ///< 0: no collective
    std::int32_t peer = schema::kNoPeer;
    std::int32_t tag = schema::kAnyTag;
    std::vector<Waiting> waiting;  ///< by rank
    std::vector<Party> others;     ///< members that are not in it, by their rank there; or the peer
};

struct JobWaits {
    std::vector<Wait> waits;  ///< the oldest first
    std::vector<std::vector<Index>>
        cycles;  ///< processes, each of which waits for the next, the last for the first
    std::vector<Party> never_came;  ///< seen, waited for, and waiting for nobody
    std::vector<Waiting> died;      ///< who was killed in a call, however young that was

    bool empty() const { return waits.empty() && died.empty(); }
};

/// What the process says of a group. @return null: nothing
const Group* group_of(const Process& process, std::uint64_t id);

/// The process's rank in the job: as its groups say, else as its launcher did; -1: unknown.
std::int32_t job_rank_of(const Process& process);

JobWaits waits_of(const Job& job);

}  // namespace ringside::viewer_export::model
