// What a process waits for, as its segment says, read also while nothing is recorded: its open calls, and where its groups stand. Plain copies, checked.
// Made by MappedSegment; kept by TrackedProcess, written by dump/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schema/ids.hpp"
#include "schema/open_calls.hpp"

namespace ringside::agent {

struct OpenCallFacts {
    std::int32_t tid = 0;
    schema::SourceId source = schema::SourceId::kNone;
    std::string function;
    std::uint64_t begin_ticks = 0;
    std::uint64_t group = 0;
    std::uint64_t sequence = 0;
    std::int32_t peer = schema::kNoPeer;
    std::int32_t tag = schema::kAnyTag;
};

struct GroupFacts {
    std::uint64_t id = 0;
    schema::SourceId source = schema::SourceId::kNone;
    std::string label;
    std::uint32_t size = 0;
    std::int32_t rank = 0;
    std::int32_t job_rank = -1;
    std::uint64_t last = 0;
};

struct OpenFacts {
    std::vector<OpenCallFacts> calls;
    std::vector<GroupFacts> groups;
};

}  // namespace ringside::agent
