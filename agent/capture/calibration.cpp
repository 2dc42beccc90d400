#include "agent/capture/calibration.hpp"

#include <cmath>
#include <ctime>

namespace ringside::agent {
namespace {

constexpr std::int64_t kBaselineNs = 200'000'000;

/// The tightest of several snapshots: one that was interrupted half-way would be wrong by the interruption.
schema::ClockSnapshot tight_snapshot(schema::TicksSource source) {
    constexpr int kTries = 16;
    schema::ClockSnapshot best = schema::take_snapshot(source);
    for (int i = 0; i < kTries; ++i) {
        const schema::ClockSnapshot next = schema::take_snapshot(source);
        if (next.width_ticks < best.width_ticks) best = next;
    }
    return best;
}

}  // namespace

Nanoseconds Calibration::node_ns(Ticks ticks) const {
    const auto run = static_cast<std::int64_t>(ticks.value - reference_ticks);
    return {reference_ns + std::llround(static_cast<double>(run) * 1e9 / ticks_per_second)};
}

Ticks Calibration::ticks_at(Nanoseconds node_ns) const {
    const auto run = static_cast<double>(node_ns.value - reference_ns) * ticks_per_second / 1e9;
    // Before the ticks began there is only their first.
    if (run < -static_cast<double>(reference_ticks)) return {0};
    return {reference_ticks + static_cast<std::uint64_t>(std::llround(run))};
}

Calibration measure_calibration(std::int64_t skew_offset_ns, double skew_drift_ppb) {
    Calibration calibration;
    calibration.source = schema::find_ticks_source();
    const schema::ClockSnapshot first = tight_snapshot(calibration.source);
    const timespec baseline{0, kBaselineNs};
    timespec left = baseline;
    while (::clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) != 0) {
    }
    const schema::ClockSnapshot second = tight_snapshot(calibration.source);
    const auto ticks = static_cast<double>(second.ticks - first.ticks);
    const auto elapsed_ns = static_cast<double>(second.monotonic_ns - first.monotonic_ns);
    const double true_rate =
        calibration.source == schema::TicksSource::kMonotonic ? 1e9 : ticks * 1e9 / elapsed_ns;
    // Each end may lie anywhere in its bracket: half a width each way.
    const auto widths = static_cast<double>(first.width_ticks + second.width_ticks);
    calibration.error_ppb = widths / 2 / ticks * 1e9;
    calibration.ticks_per_second = true_rate / (1 + skew_drift_ppb * 1e-9);
    calibration.reference_ticks = second.ticks;
    calibration.reference_ns = second.realtime_ns + skew_offset_ns;
    return calibration;
}

}  // namespace ringside::agent
