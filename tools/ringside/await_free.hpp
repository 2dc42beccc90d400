// `ringside trace --wait`: until no other capture runs.
#pragma once

#include "tools/ringside/agents.hpp"
#include "tools/ringside/process.hpp"
#include "tools/ringside/progress.hpp"

namespace ringside::tools {

/// "capture-00000000c0ffee00 on node a": the first of the agents' that runs now; empty: none. Agents that don't answer are passed over.
std::string running_capture(const Agents& agents);

/// Waits until none runs on any of them, and tells whom it waits for.
/// @return 0, or the signal that came meanwhile
int await_free(const Agents& agents, SignalGuard& signals, Progress& progress);

}  // namespace ringside::tools
