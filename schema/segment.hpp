// A segment: the shared-memory file of one process. Sparse at its maximum, mapped once, one page until something is recorded.
//
//   0        header                    4 KiB    at load
//   4096     open calls, groups        4 KiB    first MPI call or collective (open_calls.hpp)
//   8192     names: 8192 x 16 B        128 KiB  first lane
//            name bytes                384 KiB
//            attributes: 1024 x 32 B   32 KiB
//            lane table: 2048 x 16 B   32 KiB   (layout 2: 1024)
//            lanes                     4 KiB header + room for each of its rings
//
// A process's life is told by an OFD lock on the file, held by its mapping. The shim writes, the agent reads and treats every
// word as hostile; it writes only lane tails and recycled lane states, and the `selected` flag.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "schema/control_page.hpp"
#include "schema/ids.hpp"
#include "schema/lane.hpp"
#include "schema/names.hpp"
#include "schema/ticks.hpp"
#include "schema/units.hpp"

namespace ringside::schema {

inline constexpr std::uint64_t kSegmentMagic = 0x314d474553445352ull;  // "RSDSEGM1"
inline constexpr std::uint32_t kSegmentLayout = 3;
/// Has lanes of one ring each, and half as many.
inline constexpr std::uint32_t kOldestSegmentLayout = 2;
/// Address room, not memory: enough for kMaxLanes that have all grown as far as kDefaultMostLaneKib.
inline constexpr std::uint64_t kSegmentBytes = 16ull << 30;
/// Where the process's limits leave no room for that.
inline constexpr std::uint64_t kSmallSegmentBytes = 256ull << 20;

enum class SegmentState : std::uint32_t { kInit = 0, kReady = 1, kClosing = 2 };

/// What a source reached in this process.
enum class SourceLevel : std::uint32_t {
    kAbsent = 0,  ///< its framework is not in the process
    kOff = 1,     ///< there, and not attached now
    kFull = 2,
    kDegraded = 3,         ///< attached; the reason says what is missing
    kNotInstrumented = 4,  ///< there, and could not be attached; the reason says why
};

struct SourceStatus {
    std::atomic<std::uint32_t> level;  ///< SYNC(level): stored with release after the reason
    std::uint32_t reserved;
    std::atomic<std::uint64_t> reason[15];  ///< NUL-padded text, 119 characters at most
};
static_assert(sizeof(SourceStatus) == 128);
inline constexpr std::uint32_t kReasonBytes = 120;

/// What was lost or passed over in a whole process; a lane's own drops stand in the lane.
enum class Loss : std::uint32_t {
    kNamesFull = 0,        ///< names that went inline or were cut
    kStackTooDeep = 1,     ///< ranges below the open stack's depth: passed over
    kTableFull = 2,        ///< calls that found the in-flight pool full: passed over
    kLaneRefused = 3,      ///< hooks on threads that got no lane (budget, memory), not records
    kReentered = 4,        ///< hooks that ran inside a hook (a signal handler)
    kUnmatchedEnd = 5,     ///< ends without a begin that were passed over
    kHookOtherTarget = 6,  ///< slots that pointed elsewhere and were left alone
    // How often more memory was refused, by what; what was lost for it is counted in the lanes and as kLaneRefused.
    kRefusedByProcess = 7,      ///< the process's budget
    kRefusedByNode = 8,         ///< the node's
    kRefusedByCgroup = 9,       ///< a memory cgroup near its limit
    kRefusedByFileSystem = 10,  ///< half of what is free, or full
    kGpuDropped = 11,           ///< records that CUPTI dropped, or gave without a time
    kRefusedByKernel = 12,  ///< memory: no call here makes it real by an error instead of a signal
    kAttributesLost = 13    ///< shapes, labels, peers of records that found the name table full
};
inline constexpr std::uint32_t kLossCounters = 16;

struct SegmentHeader {
    std::uint64_t magic;
    std::uint32_t layout;
    std::uint32_t mark;                ///< kMachineMark
    std::atomic<std::uint32_t> state;  ///< SegmentState; SYNC(ready)
    std::atomic<std::uint32_t>
        selected;  ///< written by the agent: captures of "selected" include this one
    std::atomic<std::uint32_t>
        attached_word;  ///< the capture word that the shim has wholly acted on; SYNC(attached)
    std::atomic<std::uint32_t> lanes_in_use;  ///< entries of the lane table ever used
    std::int32_t pid;                         ///< in the process's own namespace
    std::int32_t parent_pid;
    std::uint32_t uid;
    std::int32_t rank;            ///< from the launcher's environment; -1: none
    std::uint64_t pid_namespace;  ///< inode
    std::uint64_t start_ticks;
    std::uint64_t size_bytes;
    std::uint32_t ticks_source;           ///< TicksSource
    std::atomic<std::int32_t> worker_id;  ///< the RPC worker's id; -1: none
    ClockSnapshot load_clock;             // 80
    ClockSnapshot capture_clock;          // 112
    std::atomic<std::uint64_t>
        lane_bytes_used;  ///< bump allocator of the lanes' area: address room
    std::atomic<std::uint32_t> name_bytes_used;
    std::atomic<std::uint32_t> names_used;
    std::atomic<std::uint32_t> worker_name;  ///< NameId; 0: none
    std::uint32_t reserved0;
    std::atomic<std::uint64_t> next_key;  ///< of async pairs and RPC halves, from 1
    std::atomic<std::uint64_t> losses[kLossCounters];
    /// Memory made real for captures: lanes, names. The agent takes off what it takes back.
    std::atomic<std::uint64_t> real_bytes;
    std::uint64_t reserved1[6];
    SourceStatus sources[kSourceCount];
    char job[64];
    char executable[256];
    char command_line[512];  ///< arguments, each ended by a NUL
    std::uint8_t reserved2[856];
};
static_assert(sizeof(SegmentHeader) == kPageBytes);
static_assert(offsetof(SegmentHeader, load_clock) == 80 && offsetof(SegmentHeader, losses) == 176 &&
              offsetof(SegmentHeader, sources) == 360 && offsetof(SegmentHeader, job) == 2408);

/// An entry of the lane table.
struct LaneEntry {
    std::atomic<std::uint64_t>
        offset;  ///< of the LaneHeader, from the segment's start; SYNC(lane): stored last
    std::atomic<std::uint32_t> capacity_cells;  ///< of the first ring
    std::atomic<std::uint32_t> ring_count;      ///< 0, as layout 2 has it: one
};
static_assert(sizeof(LaneEntry) == 16);

inline constexpr std::uint32_t kMaxLanes = 2048;
inline constexpr std::uint32_t kMaxLanesOfLayout2 = 1024;
inline constexpr std::uint64_t kNamesOffset = 8192;
inline constexpr std::uint64_t kNameBytesOffset = kNamesOffset + kNameEntries * sizeof(NameEntry);
inline constexpr std::uint64_t kAttributesOffset = kNameBytesOffset + kNameBytes;
inline constexpr std::uint64_t kLaneTableOffset =
    kAttributesOffset + kAttributeEntries * sizeof(AttributeEntry);
constexpr std::uint32_t max_lanes(std::uint32_t layout) {
    return layout == kOldestSegmentLayout ? kMaxLanesOfLayout2 : kMaxLanes;
}
constexpr std::uint64_t lanes_offset(std::uint32_t layout) {
    return kLaneTableOffset + max_lanes(layout) * sizeof(LaneEntry);
}
inline constexpr std::uint64_t kLanesOffset = lanes_offset(kSegmentLayout);
static_assert(kLanesOffset % kPageBytes == 0 && kLanesOffset < kSegmentBytes);

/// A decimal file name `<pid namespace>.<pid>.<ticks>` fits in this, NUL included.
inline constexpr std::size_t kSegmentNameBytes = 64;

}  // namespace ringside::schema
