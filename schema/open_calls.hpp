// The page behind the header: what this process waits for, and where each of its groups (MPI communicators, torch's process groups) stands, kept
// also while nothing is recorded. So a capture that begins after a job has hung shows who waits, with whom, since when, and who never came.
//
//   4096   40 OpenCall    a call that may wait for other processes, from its begin to its end
//   6656   24 GroupState  a group that this process is in: its place there, and how many collectives it has begun
//
// One writer an entry at a time: it claims a free one (`owner`, `group`), writes under an odd version, and gives it back. The agent reads an entry
// between two equal, even versions. All zero (a page that was never made real, too): nothing is open.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "schema/units.hpp"

namespace ringside::schema {

inline constexpr std::uint64_t kOpenCallsOffset = 4096;
inline constexpr std::uint32_t kOpenCalls = 40;
inline constexpr std::uint32_t kGroupStates = 24;

/// OpenCall::peer and ::tag: whichever comes; none at all.
inline constexpr std::int32_t kAnyPeer = -1;
inline constexpr std::int32_t kNoPeer = -2;
inline constexpr std::int32_t kAnyTag = -1;

/// A text and who wrote it, in whole words: NUL-padded, the last byte is the SourceId.
template <std::uint32_t kWords>
struct SourcedText {
    std::atomic<std::uint64_t> words[kWords];
    static constexpr std::uint32_t kMaxBytes = kWords * 8 - 1;
};

struct OpenCall {
    std::atomic<std::uint32_t> version;   ///< odd: being written. SYNC(open call)
    std::atomic<std::int32_t> owner;      ///< tid of the thread whose it is; 0: free
    std::atomic<std::uint64_t> begin;     ///< ticks; 0: its owner is in no call
    std::atomic<std::uint64_t> group;     ///< GroupState::group of the same group; 0: none
    std::atomic<std::uint64_t> sequence;  ///< of a collective in its group, from 1; 0: not one
    std::atomic<std::int32_t> peer;       ///< waited for: its rank in the job; kAnyPeer, kNoPeer
    std::atomic<std::int32_t> tag;        ///< of a message; kAnyTag
    SourcedText<3> function;              ///< as records name it
};
static_assert(sizeof(OpenCall) == 64 && offsetof(OpenCall, function) == 40);

struct GroupState {
    std::atomic<std::uint32_t> version;  ///< odd: being written. SYNC(group state)
    std::atomic<std::uint32_t> size;     ///< members
    std::atomic<std::uint64_t>
        group;  ///< equal at all members, of no other group of the job; 0: free
    std::atomic<std::uint64_t>
        last;  ///< sequence of the last collective that this process has begun; 0: none
    std::atomic<std::int32_t> rank;  ///< of this process in the group
    std::atomic<std::int32_t>
        job_rank;  ///< of this process in the job (MPI_COMM_WORLD, the default process group); -1: unknown
    SourcedText<4>
        label;  ///< as the attribute sets of its collectives' names have it (their category)
};
static_assert(sizeof(GroupState) == 64 && offsetof(GroupState, label) == 32);

struct OpenCallsPage {
    OpenCall calls[kOpenCalls];
    GroupState groups[kGroupStates];
};
static_assert(sizeof(OpenCallsPage) == kPageBytes &&
              offsetof(OpenCallsPage, groups) == 6656 - kOpenCallsOffset);

}  // namespace ringside::schema
