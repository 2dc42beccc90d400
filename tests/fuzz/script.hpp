// What a fuzzer's input means: a head that lays out a segment, then orders of 12 bytes each, what a hostile process does to it and what
// the agent does meanwhile. Any bytes are a script; orders have one size so that a mutator can cut, insert and swap them.
//
//   head    0 lanes - 1 (bits 0-1)   1 capacities, 16 << 2 bits a lane   2 flags (kFresh ...)   3 the instants (0: all that comes)
//   order   0 what (Order, modulo)   1 where u8   2 index u16   4 value u64
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ringside::tests::fuzz {

enum class Order : std::uint8_t {
    // the process; those up to kDrop are what an honest one does
    kRecord,    ///< a whole record of a known kind
    kOpen,      ///< a range begins, or the last one ends
    kName,      ///< interns a name, or fills an attribute set
    kThread,    ///< a thread ends, or the next one takes its lane
    kDrop,      ///< records that found no room
    kCells,     ///< cells whose first word is anything
    kCommit,    ///< committed is anything
    kWord,      ///< any word of any part
    kTruncate,  ///< the file ends earlier, or is as long as before
    // when: the order after it comes between two looks of the agent
    kLater,
    // the agent
    kDrain,
    kSeal,
    kCapture,   ///< another capture begins, or this one is over
    kTakeOver,  ///< the agent dies, the next one maps the segment
    kLook,      ///< all that is read beside the drain
    kInstants,
};
inline constexpr std::uint8_t kOrders = 16;

/// What kWord writes to.
enum class Part : std::uint8_t {
    kHeader,
    kNames,
    kNameBytes,
    kAttributes,
    kLaneTable,
    kLane,
    kOpenStack,
    kLaneCells,
};
inline constexpr std::uint8_t kParts = 8;

// Flags of the head.
inline constexpr std::uint8_t kFresh = 1;          ///< the agent watched while the lanes were made
inline constexpr std::uint8_t kCapturing = 2;      ///< a capture runs from before the first order
inline constexpr std::uint8_t kLatePositions = 4;  ///< positions begin far from 0
inline constexpr std::uint8_t kLastPositions =
    8;  ///< positions begin where 64 bits end: no honest lane's do

inline constexpr std::size_t kHeadBytes = 4;
inline constexpr std::size_t kOrderBytes = 12;
inline constexpr std::size_t kMostOrders = 256;

struct Step {
    Order order = Order::kRecord;
    std::uint8_t where = 0;
    std::uint16_t index = 0;
    std::uint64_t value = 0;
};

class Script {
public:
    Script(const std::uint8_t* bytes, std::size_t size) : bytes_(bytes), size_(size) {}

    std::uint8_t head(std::size_t i) const { return i < size_ ? bytes_[i] : 0; }
    std::size_t orders() const {
        const std::size_t whole = size_ < kHeadBytes ? 0 : (size_ - kHeadBytes) / kOrderBytes;
        return whole < kMostOrders ? whole : kMostOrders;
    }
    Step order(std::size_t i) const {
        const std::uint8_t* at = bytes_ + kHeadBytes + i * kOrderBytes;
        Step step;
        step.order = static_cast<Order>(at[0] % kOrders);
        step.where = at[1];
        std::memcpy(&step.index, at + 2, sizeof step.index);
        std::memcpy(&step.value, at + 4, sizeof step.value);
        return step;
    }

private:
    const std::uint8_t* bytes_;
    std::size_t size_;
};

}  // namespace ringside::tests::fuzz
