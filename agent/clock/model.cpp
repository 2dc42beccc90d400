// Two candidate lines are made and the one with the smaller bound is taken: through both epochs' best samples, or through one of them
// with the drift that is still possible. The first wins after any capture worth the name; the second where the epochs lie so close that
// their slope is noise (a capture that ran from the start and is only now measured).
#include "agent/clock/model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace ringside::agent {
namespace {

using schema::Nanoseconds;

/// Sums of times that other processes may have made up.
__extension__ using Wide = __int128;

std::int64_t bounded(Wide ns) {
    return static_cast<std::int64_t>(std::clamp<Wide>(ns, -kFarthestNs, kFarthestNs));
}

double to_double(Wide ns) {
    return static_cast<double>(ns);
}

/// What a sample says: leader - node at `node_ns`, within half.
struct Anchor {
    std::int64_t node_ns = 0;
    std::int64_t offset_ns = 0;
    std::int64_t half_ns = 0;
};

Anchor anchor_of(const PingSample& sample) {
    const std::int64_t half = (sample.rtt_ns() + 1) / 2;
    return {sample.node_ns.value, sample.sent_leader_ns.value + half - sample.node_ns.value, half};
}

std::optional<Anchor> best_anchor(std::span<const PingSample> samples) {
    const PingSample* best = nullptr;
    for (const PingSample& sample : samples) {
        if (usable(sample) && (best == nullptr || sample.rtt_ns() < best->rtt_ns())) best = &sample;
    }
    if (best == nullptr) return std::nullopt;
    return anchor_of(*best);
}

/// How far `valid` reaches from `at`, in nanoseconds.
double reach(std::int64_t at, NodeInterval valid) {
    const double before = static_cast<double>(at - valid.from.value);
    const double after = static_cast<double>(valid.to.value - at);
    return std::max({0.0, before, after});
}

std::int64_t round_up(double ns) {
    constexpr double kLimit = 9e18;
    return ns >= kLimit ? std::numeric_limits<std::int64_t>::max()
                        : static_cast<std::int64_t>(std::ceil(ns));
}

ClockCorrection through_both(const Anchor& first, const Anchor& second, NodeInterval valid) {
    const double span = static_cast<double>(second.node_ns - first.node_ns);
    const double slope = static_cast<double>(second.offset_ns - first.offset_ns) / span;
    const double outside = std::max({0.0, static_cast<double>(first.node_ns - valid.from.value),
                                     static_cast<double>(valid.to.value - second.node_ns)});
    const double halves = static_cast<double>(first.half_ns + second.half_ns);
    const double bound =
        static_cast<double>(std::max(first.half_ns, second.half_ns)) + halves * outside / span;
    return {{first.node_ns}, first.offset_ns, slope * 1e9, round_up(bound)};
}

ClockCorrection through_one(const Anchor& anchor, double drift_low, double drift_high,
                            NodeInterval valid) {
    const double drift = (drift_low + drift_high) / 2;
    const double bound = static_cast<double>(anchor.half_ns) +
                         (drift_high - drift_low) / 2 * reach(anchor.node_ns, valid) / 1e9;
    return {{anchor.node_ns}, anchor.offset_ns, drift, round_up(bound)};
}

ClockCorrection fit(const Anchor& first, const Anchor& second, NodeInterval valid) {
    const double span = static_cast<double>(second.node_ns - first.node_ns);
    const Anchor& better = second.half_ns < first.half_ns ? second : first;
    if (span <= 0) return through_one(better, -kMaxDriftPpb, kMaxDriftPpb, valid);
    const double middle = static_cast<double>(second.offset_ns - first.offset_ns) / span * 1e9;
    const double wide = static_cast<double>(first.half_ns + second.half_ns) / span * 1e9;
    const ClockCorrection line = through_both(first, second, valid);
    // Clocks that do run apart faster than any should: what was measured is believed, not the limit.
    if (middle - wide > kMaxDriftPpb || middle + wide < -kMaxDriftPpb) return line;
    const ClockCorrection limited = through_one(better, std::max(middle - wide, -kMaxDriftPpb),
                                                std::min(middle + wide, kMaxDriftPpb), valid);
    return limited.bound_ns < line.bound_ns ? limited : line;
}

/// By how much the samples contradict the line: a clock that was stepped or does not run straight.
std::int64_t worst_residual(const ClockCorrection& line, std::span<const PingSample> samples) {
    std::int64_t worst = 0;
    for (const PingSample& sample : samples) {
        if (!usable(sample)) continue;
        const Anchor anchor = anchor_of(sample);
        const std::int64_t at = line.leader_ns(sample.node_ns).value - sample.node_ns.value;
        worst = std::max(worst, std::abs(at - anchor.offset_ns) - anchor.half_ns);
    }
    return worst;
}

}  // namespace

bool usable(const PingSample& sample) {
    const auto fits = [](Nanoseconds time) {
        return time.value >= -kFarthestNs && time.value <= kFarthestNs;
    };
    return fits(sample.sent_leader_ns) && fits(sample.node_ns) && fits(sample.received_leader_ns) &&
           sample.rtt_ns() >= 0;
}

std::int64_t add_bounded(std::int64_t base_ns, double ns) {
    constexpr double kFar = static_cast<double>(kFarthestNs);
    const double part = std::isnan(ns) ? 0.0 : std::nearbyint(std::clamp(ns, -kFar, kFar));
    return bounded(Wide{base_ns} + static_cast<std::int64_t>(part));
}

Nanoseconds ClockCorrection::leader_ns(Nanoseconds node_ns) const {
    const double run = to_double(Wide{node_ns.value} - reference_node_ns.value);
    return {add_bounded(bounded(Wide{node_ns.value} + offset_ns), drift_ppb * run / 1e9)};
}

Nanoseconds ClockCorrection::node_ns(Nanoseconds leader_ns) const {
    const std::int64_t shifted = bounded(Wide{leader_ns.value} - offset_ns);
    // leader - offset - reference = run * (1 + d): subtracting the part that drifted keeps the integer's precision.
    const double drift = drift_ppb / 1e9;
    const double run = to_double(Wide{shifted} - reference_node_ns.value);
    return {add_bounded(shifted, -run * (drift / (1 + drift)))};
}

std::vector<PingSample> taken_by_relay(std::span<const PingSample> samples,
                                       const ClockCorrection& relay) {
    constexpr std::int64_t kRoundingNs = 1;
    const double wrong = static_cast<double>(relay.bound_ns) + kRoundingNs;
    std::vector<PingSample> taken;
    for (const PingSample& sample : samples) {
        if (!usable(sample)) continue;
        taken.push_back({{add_bounded(relay.leader_ns(sample.sent_leader_ns).value, -wrong)},
                         sample.node_ns,
                         {add_bounded(relay.leader_ns(sample.received_leader_ns).value, wrong)}});
    }
    return taken;
}

ClockMeasurement measure_clock(std::span<const PingSample> before,
                               std::span<const PingSample> during,
                               std::span<const PingSample> after, NodeInterval valid) {
    ClockMeasurement result;
    result.pings = static_cast<std::uint32_t>(before.size() + during.size() + after.size());
    const std::optional<Anchor> first = best_anchor(before);
    const std::optional<Anchor> second = best_anchor(after);
    if (!first && !second) {
        result.correction.bound_ns = std::numeric_limits<std::int64_t>::max();
        return result;
    }
    if (first && second) {
        result.correction = fit(*first, *second, valid);
        result.best_rtt_ns = 2 * std::min(first->half_ns, second->half_ns);
    } else {
        const Anchor& only = first ? *first : *second;
        result.correction = through_one(only, -kMaxDriftPpb, kMaxDriftPpb, valid);
        result.best_rtt_ns = 2 * only.half_ns;
    }
    std::int64_t residual = 0;
    for (const auto& samples : {before, during, after})
        residual = std::max(residual, worst_residual(result.correction, samples));
    constexpr std::int64_t kRoundingNs = 2;  // of the half and of the product
    result.correction.bound_ns = round_up(static_cast<double>(result.correction.bound_ns) +
                                          static_cast<double>(residual + kRoundingNs));
    return result;
}

}  // namespace ringside::agent
