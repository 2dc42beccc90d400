// Ticks of one node to the leader's nanoseconds: its calibration, then its correction. The one place where the two meet, so that the
// join and a view never disagree. Header only.
#pragma once

#include <cstdint>

#include "agent/capture/engine.hpp"
#include "agent/clock/model.hpp"

namespace ringside::agent {

/// node_ns of a tick, by the formula of dump.fbs.
inline Nanoseconds node_time(const Calibration& calibration, Ticks ticks) {
    const auto run = static_cast<std::int64_t>(ticks.value - calibration.reference_ticks);
    const double ns = static_cast<double>(run) * 1e9 / calibration.ticks_per_second;
    return {add_bounded(calibration.reference_ns, ns)};
}

/// A node's ticks on the leader's clock.
struct NodeClock {
    Calibration calibration;
    ClockCorrection correction;

    Nanoseconds leader_ns(Ticks ticks) const {
        return correction.leader_ns(node_time(calibration, ticks));
    }
};

}  // namespace ringside::agent
