// A node's clock against the leader's: offset, drift and a bound that holds whatever the network's asymmetry was. Pure arithmetic over
// ping samples; who sends the pings is none of its business. Called by the leader and, for its types, by the join.
//
//   leader   sent ----------------- received        the node read its clock somewhere between the two:
//   node             node_ns                        leader_ns(node_ns) = (sent + received) / 2, give or take rtt / 2
//
// One sample with a short round trip before the capture and one after it make a line; between the two its error is no more than the
// larger of their halves, beyond them it grows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schema/units.hpp"

namespace ringside::agent {

/// One ping, each time by the clock of the side that took it.
struct PingSample {
    schema::Nanoseconds sent_leader_ns;
    schema::Nanoseconds node_ns;
    schema::Nanoseconds received_leader_ns;

    constexpr std::int64_t rtt_ns() const {
        return received_leader_ns.value - sent_leader_ns.value;
    }
};

/// leader_ns = node_ns + offset_ns + drift_ppb * (node_ns - reference_node_ns) / 1e9, right within bound_ns. As in job.fbs.
struct ClockCorrection {
    schema::Nanoseconds reference_node_ns;
    std::int64_t offset_ns = 0;
    double drift_ppb = 0;
    std::int64_t bound_ns = 0;

    schema::Nanoseconds leader_ns(schema::Nanoseconds node_ns) const;
    /// The inverse, exact within a nanosecond.
    schema::Nanoseconds node_ns(schema::Nanoseconds leader_ns) const;
};

/// Times are kept within this of 1970: ticks and replies are other processes' words, and sums of a few of them must not overflow.
inline constexpr std::int64_t kFarthestNs = 4'000'000'000'000'000'000;

/// @return false for what no clock says: sums of it could overflow
bool usable(const PingSample& sample);

/// base + ns, both of any size, kept within kFarthestNs.
std::int64_t add_bounded(std::int64_t base_ns, double ns);

/// Two clocks of one job never run apart faster than this: what NTP may slew at most. It limits the drift where the pings alone say
/// less, and the bound where there was no second epoch.
inline constexpr double kMaxDriftPpb = 500'000;

/// Pings that a relay took, by its own clock, as ones of the leader: each end of a round trip moves outwards by what the relay's correction may be wrong. Those
/// that no clock says are left out.
/// @param relay  holds, within its bound, for all of their times
/// @thread thread-safe
std::vector<PingSample> taken_by_relay(std::span<const PingSample> samples,
                                       const ClockCorrection& relay);

/// A stretch of a node's time for which a correction must hold.
struct NodeInterval {
    schema::Nanoseconds from;
    schema::Nanoseconds to;
};

struct ClockMeasurement {
    ClockCorrection correction;
    std::int64_t best_rtt_ns = 0;
    std::uint32_t pings = 0;
};

/// Fits a correction to the pings of one node.
/// @param before, after  the two epochs; either may be empty, not both
/// @param during         any others: they don't make the line, but widen the bound where they contradict it
/// @param valid          node times that will be corrected; the bound covers all of it
/// @return the correction; with no sample at all an identity whose bound is the greatest number
/// @thread thread-safe
ClockMeasurement measure_clock(std::span<const PingSample> before,
                               std::span<const PingSample> during,
                               std::span<const PingSample> after, NodeInterval valid);

}  // namespace ringside::agent
