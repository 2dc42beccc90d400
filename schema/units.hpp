// Quantities that cross a boundary, as types: a count of ticks is never added to a count of nanoseconds by accident.
// Plain aggregates without padding, so that they may lie in shared memory. Used by everything.
#pragma once

#include <compare>
#include <cstdint>

namespace ringside::schema {

/// Raw time of one segment's clock (the TSC, or CLOCK_MONOTONIC in ns where the TSC is not invariant).
/// Comparable within one host only; never across nodes.
struct Ticks {
    std::uint64_t value = 0;
    auto operator<=>(const Ticks&) const = default;
};

/// Nanoseconds. Of which clock, the name of the variable says (node_ns, leader_ns, monotonic_ns).
struct Nanoseconds {
    std::int64_t value = 0;
    auto operator<=>(const Nanoseconds&) const = default;
};

inline constexpr std::int64_t kNsPerSecond = 1'000'000'000;
inline constexpr std::int64_t kNsPerMillisecond = 1'000'000;
inline constexpr std::uint64_t kPageBytes = 4096;

}  // namespace ringside::schema
