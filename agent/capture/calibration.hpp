// The node's clock as a function of ticks, measured once when the agent starts.
#pragma once

#include "agent/capture/engine.hpp"

namespace ringside::agent {

/// Measures the ticks' frequency against CLOCK_MONOTONIC over at least 0.2 s (the call takes that long) and ties it to CLOCK_REALTIME.
/// @param skew_offset_ns, skew_drift_ppb  tests only: the node's clock reads real + offset + drift x (real - reference)
Calibration measure_calibration(std::int64_t skew_offset_ns, double skew_drift_ppb);

}  // namespace ringside::agent
