// Which range took which memory: `[memory]` marks of a lane (tensors that come and go, of the CPU and of its devices) given to the ranges that
// they lie in. As torch's table: a range's memory is that of its whole time, its own is what none of its children has.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "viewer_export/model/event.hpp"
#include "viewer_export/model/job.hpp"
#include "viewer_export/model/nesting.hpp"

namespace ringside::viewer_export::model {

/// Negative: it went.
struct MemoryBytes {
    std::int64_t cpu = 0;
    std::int64_t cuda = 0;
};

void add_to(MemoryBytes& sum, const MemoryBytes& more);

struct MemoryEvent {
    std::int64_t ns;
    MemoryBytes bytes;  ///< of one of the two
    Index request;      ///< as in Range
};

/// The memory events of each lane, by time; empty where none was recorded.
std::vector<std::vector<MemoryEvent>> memory_events(const Job& job);

struct MemoryUse {
    std::vector<MemoryBytes> total;  ///< of each range
    std::vector<MemoryBytes>
        self;  ///< less the direct children's; a folded range's stands with the one it is folded into
    std::vector<MemoryEvent> outside;  ///< in no range
};

/// Linear.
/// @param nesting  nest() of the same ranges
MemoryUse memory_use(std::span<const Range> ranges, const Nesting& nesting,
                     std::span<const MemoryEvent> events);

}  // namespace ringside::viewer_export::model
