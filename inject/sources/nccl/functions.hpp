// NCCL's functions that are hooked: what each does, and where its arguments stand. What only asks, or gives memory, is not here: nothing waits in it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringside::inject::nccl {

/// An argument of a call as it is passed: in a register or a place of the stack. Of an int the upper half is undefined.
using Word = std::uint64_t;

enum class Kind : std::uint8_t {
    kCollective,
    kOther,  ///< may wait; a range without a number
    kGroupStart,
    kGroupEnd,
    kInit,          ///< makes a communicator, by one unique id
    kInitScalable,  ///< ... by several
    kInitAll,       ///< makes all ranks of one, in this process
    kSplit,
    kShrink,
    kFree,
};

inline constexpr std::uint8_t kNone = 255;

struct Function {
    char name[28];
    Kind kind;
    std::uint8_t comm;  ///< the place of the communicator, or of where the new ones go
    std::uint8_t made;  ///< of where a communicator made of `comm` goes
};

/// ncclUniqueId is 128 bytes, passed by value: these lie on the stack, behind all six registers, whatever is in those.
inline constexpr std::uint8_t kUniqueId = 6;
inline constexpr std::size_t kUniqueIdBytes = 128;
inline constexpr std::uint8_t kWithUniqueId = kUniqueId + kUniqueIdBytes / sizeof(Word);

// X(name, number of words, kind, places...)
#define RINGSIDE_NCCL(X)                                  \
    X(AllReduce, 7, kCollective, 5, kNone)                \
    X(Broadcast, 7, kCollective, 5, kNone)                \
    X(Bcast, 6, kCollective, 4, kNone)                    \
    X(Reduce, 8, kCollective, 6, kNone)                   \
    X(ReduceScatter, 7, kCollective, 5, kNone)            \
    X(AllGather, 6, kCollective, 4, kNone)                \
    X(AlltoAll, 6, kCollective, 4, kNone)                 \
    X(Gather, 7, kCollective, 5, kNone)                   \
    X(Scatter, 7, kCollective, 5, kNone)                  \
    X(Send, 6, kOther, 4, kNone)                          \
    X(Recv, 6, kOther, 4, kNone)                          \
    X(GroupStart, 0, kGroupStart, kNone, kNone)           \
    X(GroupEnd, 0, kGroupEnd, kNone, kNone)               \
    X(CommInitRank, kWithUniqueId, kInit, 0, kNone)       \
    X(CommInitRankConfig, kWithUniqueId, kInit, 0, kNone) \
    X(CommInitRankScalable, 6, kInitScalable, 0, kNone)   \
    X(CommInitAll, 3, kInitAll, 0, kNone)                 \
    X(CommSplit, 5, kSplit, 0, 3)                         \
    X(CommShrink, 6, kShrink, 0, 3)                       \
    X(CommFinalize, 1, kOther, 0, kNone)                  \
    X(CommDestroy, 1, kFree, 0, kNone)                    \
    X(CommAbort, 1, kFree, 0, kNone)

enum Index : std::uint8_t {
#define RINGSIDE_INDEX(name, ...) k##name,
    RINGSIDE_NCCL(RINGSIDE_INDEX)
#undef RINGSIDE_INDEX
        kFunctionCount
};

inline constexpr Function kFunctions[] = {
#define RINGSIDE_FUNCTION(name, words, kind, ...) {"nccl" #name, Kind::kind, __VA_ARGS__},
    RINGSIDE_NCCL(RINGSIDE_FUNCTION)
#undef RINGSIDE_FUNCTION
};

}  // namespace ringside::inject::nccl
