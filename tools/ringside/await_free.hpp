// `ringside trace --wait`: until no other capture runs.
#pragma once

#include "tools/ringside/agents.hpp"
#include "tools/ringside/process.hpp"
#include "tools/ringside/progress.hpp"

namespace ringside::tools {

struct Awaited {
    int signal = 0;       ///< that came meanwhile; 0: none
    bool waited = false;  ///< one was running
};

/// Waits until none runs on any of them, and tells whom it waits for. Agents that don't answer are passed over.
Awaited await_free(const Agents& agents, SignalGuard& signals, Progress& progress);

}  // namespace ringside::tools
