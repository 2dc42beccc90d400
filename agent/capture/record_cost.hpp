// What one record costs its thread on this node: the price by which views estimate a capture's overhead.
#pragma once

#include "schema/ticks.hpp"

namespace ringside::agent {

/// Two readings of the ticks and one range through RingWriter on a scratch lane: the least of several rounds, some ms in all.
/// @param ticks_per_second  without a test's skew in it, or nearly
double measure_record_cost_ns(schema::TicksSource source, double ticks_per_second);

}  // namespace ringside::agent
