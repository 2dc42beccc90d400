// What captures have kept, added up for who watches the agent.
#pragma once

#include "agent/capture/engine.hpp"
#include "agent/capture/tracked_process.hpp"

namespace ringside::agent {

/// Adds a process's part of the running capture, or window.
void add(Totals& totals, const TrackedProcess& process);

}  // namespace ringside::agent
