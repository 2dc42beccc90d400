// The clock of the records: the TSC where it is invariant, else CLOCK_MONOTONIC in nanoseconds. Which one a segment uses stands in its
// header, so agent and shim never have to agree by guessing. Hot path: one instruction.
#pragma once

#include <cpuid.h>
#include <time.h>
#include <x86intrin.h>

#include <cstdint>

#include "schema/units.hpp"

namespace ringside::schema {

enum class TicksSource : std::uint32_t { kTsc = 1, kMonotonic = 2 };

/// @return whether the processor promises a TSC that runs at one rate in every power state (CPUID 8000_0007h, EDX bit 8)
inline bool tsc_is_invariant() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    // Every x86-64 processor has this leaf; asking for the highest first would double the price, which in a virtual machine is an exit to its host.
    __cpuid(0x80000007u, a, b, c, d);
    return (d & (1u << 8)) != 0;
}

/// What new segments on this machine use. In a virtual machine the question is an exit to its host, and costs microseconds.
inline TicksSource find_ticks_source() {
    return tsc_is_invariant() ? TicksSource::kTsc : TicksSource::kMonotonic;
}

/// @units nanoseconds of `clock`; 0 where the clock does not exist
inline Nanoseconds read_clock(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return {now.tv_sec * kNsPerSecond + now.tv_nsec};
}

inline Ticks read_ticks(TicksSource source) {
    if (source == TicksSource::kTsc) [[likely]]
        return {__rdtsc()};
    return {static_cast<std::uint64_t>(read_clock(CLOCK_MONOTONIC).value)};
}

/// One instant on three clocks: the tightest of a few brackets of a REALTIME and a MONOTONIC read by ticks.
struct ClockSnapshot {
    std::uint64_t ticks = 0;
    std::int64_t monotonic_ns = 0;
    std::int64_t realtime_ns = 0;
    std::uint64_t width_ticks = 0;  ///< of the bracket: the snapshot's own error
};
static_assert(sizeof(ClockSnapshot) == 32);

inline ClockSnapshot take_snapshot(TicksSource source) {
    ClockSnapshot best{0, 0, 0, ~0ull};
    for (int i = 0; i < 8; ++i) {
        const std::uint64_t before = read_ticks(source).value;
        const Nanoseconds realtime = read_clock(CLOCK_REALTIME);
        const Nanoseconds monotonic = read_clock(CLOCK_MONOTONIC);
        const std::uint64_t after = read_ticks(source).value;
        if (after - before < best.width_ticks) {
            best = {before + (after - before) / 2, monotonic.value, realtime.value, after - before};
        }
    }
    return best;
}

}  // namespace ringside::schema
