// Pairs halves of one span id. Most ids have one client's and one server's half; where init_rpc was called twice they repeat, and time
// within the clock bound tells them apart, or nothing does and they are counted. Used by join.cpp alone.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "agent/correlate/join.hpp"

namespace ringside::agent {

/// A half as the pairing sees it: all times on the leader's clock.
struct TimedHalf {
    std::uint64_t span = 0;
    std::uint64_t trace_hi = 0;
    std::uint64_t trace_lo = 0;
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = std::numeric_limits<std::int64_t>::max();  ///< the greatest: not ended
    HalfIndex at;
    std::uint32_t process = 0;
    bool server = false;
    bool ended = false;
    bool replied = false;  ///< a client's half that a reply ended, not a timeout or a broken pipe
};

inline constexpr std::uint32_t kNoPartner = std::numeric_limits<std::uint32_t>::max();

/// Bounds of the nodes' clocks.
class PairBound {
public:
    explicit PairBound(std::span<const NodeCapture> nodes);
    /// Of the difference of two times; 0 on one node. Saturates.
    std::int64_t between(std::uint32_t node, std::uint32_t other) const {
        if (node == other) return 0;
        return bounds_[node] + bounds_[other];
    }

private:
    std::vector<std::int64_t> bounds_;  // each at most a quarter of the range
};

struct Pairs {
    std::vector<std::uint32_t> partner;   ///< of each half, an index into the input; kNoPartner
    std::vector<std::uint8_t> ambiguous;  ///< of each half
};

/// @param halves  in the order of before()
Pairs pair_halves(std::span<const TimedHalf> halves, const PairBound& bounds);

/// The order that pair_halves wants: ids together, clients first, then by begin.
bool before(const TimedHalf& a, const TimedHalf& b);

}  // namespace ringside::agent
