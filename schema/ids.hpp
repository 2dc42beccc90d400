// Identities: of a segment, a lane, an event, a name. An id is a type, never a bare integer.
// An event's id is segment.lane.position for ever: positions never restart, lanes carry a generation.
#pragma once

#include <compare>
#include <cstdint>

namespace ringside::schema {

/// One process's segment. The file's name is `<pid_namespace>.<pid>.<start_ticks>` in decimal: pids repeat across
/// containers that share a directory, and exec keeps the pid.
struct SegmentId {
    std::uint64_t pid_namespace = 0;
    std::uint32_t pid = 0;
    std::uint64_t start_ticks = 0;
    auto operator<=>(const SegmentId&) const = default;
};

/// One thread's ring within a segment; the generation tells the threads apart that used it in turn.
struct LaneId {
    std::uint32_t index = 0;
    std::uint32_t generation = 0;
    auto operator<=>(const LaneId&) const = default;
};

/// An interned name: slot index + 1 in the segment's name table.
struct NameId {
    std::uint32_t value = 0;
    auto operator<=>(const NameId&) const = default;
};
inline constexpr NameId kNoName{0};
/// The name's bytes stand in the NameInline record right before this one.
inline constexpr NameId kInlineName{0xffffffffu};

/// Interned extras of a name: index + 1 in the segment's attribute table; 0 is none.
struct AttributeId {
    std::uint16_t value = 0;
    auto operator<=>(const AttributeId&) const = default;
};

/// Which source wrote a record: the high four bits of its flags byte, and the index of its level in the header.
enum class SourceId : std::uint8_t {
    kNone = 0,
    kTorch = 1,
    kNvtx = 2,
    kGrpc = 3,
    kMpi = 4,
    kCupti = 5,
    kApi = 6,
    kItt = 7,
};
inline constexpr std::uint32_t kSourceCount = 16;
/// Those that there are.
inline constexpr SourceId kKnownSources[] = {SourceId::kTorch, SourceId::kNvtx, SourceId::kItt,
                                             SourceId::kApi,   SourceId::kGrpc, SourceId::kMpi,
                                             SourceId::kCupti};

/// Whether a source's hooks are called by the framework of its own accord and look at the capture word themselves: a process with such
/// sources alone attaches nothing, and nobody waits for it.
constexpr bool acts_alone(SourceId source) {
    return source == SourceId::kNvtx || source == SourceId::kApi || source == SourceId::kItt ||
           source == SourceId::kGrpc || source == SourceId::kMpi;
}

/// Whether a source hears of work only after the fact, and asks for what is done now and then while it is attached: kTurnNs apart at most.
constexpr bool has_turns(SourceId source) {
    return source == SourceId::kCupti;
}
inline constexpr std::int64_t kTurnNs = 50'000'000;

/// Where launchers tell a process its rank, in the order in which they nest: torchrun inside mpirun inside srun.
inline constexpr const char* kRankVariables[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                                 "SLURM_PROCID"};

}  // namespace ringside::schema
