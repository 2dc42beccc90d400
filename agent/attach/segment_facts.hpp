// What the agent knows of a process and of a lane: plain copies of what its segment says, made once and checked, free of the shared
// memory. Made by MappedSegment; read by drain/, dump/ and capture/.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "schema/ids.hpp"
#include "schema/lane.hpp"
#include "schema/ring_reader.hpp"
#include "schema/segment.hpp"

namespace ringside::agent {

struct SourceFacts {
    schema::SourceId id = schema::SourceId::kNone;
    schema::SourceLevel level = schema::SourceLevel::kAbsent;
    std::string reason;
    bool operator==(const SourceFacts&) const = default;
};

/// A copy of the segment's header.
struct SegmentFacts {
    schema::SegmentId id;
    std::int32_t parent_pid = 0;
    std::uint32_t uid = 0;
    std::int32_t rank = -1;
    schema::TicksSource ticks_source = schema::TicksSource::kTsc;
    schema::SegmentState state = schema::SegmentState::kInit;
    std::uint32_t attached_word = 0;
    std::uint32_t lanes_in_use = 0;
    std::uint64_t real_bytes = 0;  ///< memory made real for captures
    schema::ClockSnapshot load_clock;
    schema::ClockSnapshot capture_clock;
    schema::NameId worker_name;
    std::int32_t worker_id = -1;
    std::array<std::uint64_t, schema::kLossCounters> losses{};
    std::vector<SourceFacts> sources;  ///< those that are not absent
    std::string job;
    std::string executable;
    std::vector<std::string> command_line;
};

/// The header's words that change, read on every pass.
struct SegmentPulse {
    schema::SegmentState state = schema::SegmentState::kInit;
    std::uint32_t attached_word = 0;
    std::uint32_t lanes_in_use = 0;
};

struct NameFacts {
    std::uint32_t id = 0;
    std::string text;
    std::uint16_t flags = 0;
    std::uint16_t attribute = 0;
};

struct AttributeFacts {
    std::uint16_t id = 0;
    std::uint32_t domain = 0;
    std::uint32_t category = 0;
    std::uint32_t colour = 0;
    std::uint16_t payload = 0;
};

struct OpenRange {
    std::uint64_t begin = 0;
    std::uint64_t key = 0;
    std::uint64_t argument = 0;
    std::uint64_t what = 0;
    bool operator==(const OpenRange&) const = default;
};

struct LaneContext {
    schema::ContextState state = schema::ContextState::kNone;
    std::uint64_t key = 0;
    std::uint64_t trace_hi = 0;
    std::uint64_t trace_lo = 0;
    std::uint64_t span = 0;
    bool operator==(const LaneContext&) const = default;
};

/// The cold words of a lane.
struct LaneFacts {
    std::int32_t tid = 0;
    std::array<char, schema::kThreadNameBytes + 1> thread_name{};  ///< NUL-terminated
};

/// Where a lane lies, checked: all its rings inside the mapping, aligned, a power of two of cells each.
struct LaneView {
    schema::LaneHeader* header = nullptr;
    const schema::Cell* cells = nullptr;
    std::uint32_t capacity_cells = 0;  ///< of the first ring
    std::uint32_t ring_count = 1;

    schema::RingReader::Room room() const {
        return {cells, capacity_cells, ring_count, header->rings};
    }
    /// Of all rings together: no more can be unread.
    std::uint64_t all_cells() const { return schema::ring_offset(capacity_cells, ring_count); }
};

/// The words of a lane that an account needs.
struct LaneCounters {
    std::uint32_t state = 0;
    std::uint64_t dropped = 0;
    std::uint64_t first_drop_ticks = 0;
    std::uint64_t last_drop_ticks = 0;
    std::uint64_t records = 0;
};

}  // namespace ringside::agent
