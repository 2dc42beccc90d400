// The receipt of a capture: what it cost the job on this node. Every dump carries it, every view shows it.
#pragma once

#include <memory>
#include <vector>

#include "agent/capture/tracked_process.hpp"
#include "agent/dump/dump_writer.hpp"

namespace ringside::agent {

/// CPU time that this process has used.
std::int64_t own_cpu_ns();

/// All but the agent's own time.
/// @param footer  with its lanes, processes and record_cost_ns
Perturbation perturbation_of(const DumpFooter& footer,
                             const std::vector<std::unique_ptr<TrackedProcess>>& processes,
                             const Calibration& calibration);

}  // namespace ringside::agent
