// Asks the agents four times a second.
#include "tools/ringside/await_free.hpp"

#include <poll.h>

#include "agent/control/node_service.hpp"

namespace ringside::tools {

std::string running_capture(const Agents& agents) {
    for (const std::string& endpoint : agents.endpoints) {
        auto client = agents.connect(endpoint);
        if (!client) {
            continue;
        }
        const auto status = (*client)->ask<fbs::StatusReplyT>(fbs::StatusRequestT{});
        if (!status || (!status->capturing && status->leading == 0)) {
            continue;
        }
        return agent::capture_name(status->leading != 0 ? status->leading : status->capture_id) +
               " on node " + status->node;
    }
    return "";
}

int await_free(const Agents& agents, SignalGuard& signals, Progress& progress) {
    constexpr int kBetweenMs = 250;
    for (;;) {
        const std::string holder = running_capture(agents);
        if (holder.empty()) {
            return 0;
        }
        progress.tell("waiting for the end of " + holder, 0, 0, true);
        pollfd signal{signals.descriptor(), POLLIN, 0};
        ::poll(&signal, 1, kBetweenMs);
        while (const auto taken = signals.take()) {
            if (taken->number != SIGCHLD) {
                return taken->number;
            }
        }
    }
}

}  // namespace ringside::tools
