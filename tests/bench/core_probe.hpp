// Whether the core is all ours: independent additions, which take half as long again, and more, while the core's other half belongs to another guest of the
// host. Reading the ticks then takes as long as ever, so that a ratio to a floor that mostly reads them is another one.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>

#include "schema/ticks.hpp"

namespace ringside::bench {

/// @return ns of a step of the probe, some ten microseconds of it: to be compared with the least of the same process
inline double probe_core() {
    constexpr int kSteps = 8000;
    double best = 1e9;
    for (int turn = 0; turn < 3; ++turn) {
        std::uint64_t a = 1, b = 2, c = 3, d = 4;
        const std::int64_t start = schema::read_clock(CLOCK_MONOTONIC).value;
        for (int i = 0; i < kSteps; ++i)
            asm volatile("add $1, %0\n\tadd $1, %1\n\tadd $1, %2\n\tadd $1, %3"
                         : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
        const std::int64_t end = schema::read_clock(CLOCK_MONOTONIC).value;
        best = std::min(best, static_cast<double>(end - start) / kSteps);
    }
    return best;
}

}  // namespace ringside::bench
