// Asks the agents four times a second.
#include "tools/ringside/await_free.hpp"

#include <poll.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/control/node_service.hpp"
#include "tools/ringside/words.hpp"

namespace ringside::tools {

namespace {

/// @return the signal that has come; 0: none
int end_signal(SignalGuard& signals) {
    while (const auto taken = signals.take()) {
        if (taken->number != SIGCHLD) {
            return taken->number;
        }
    }
    return 0;
}

/// The first capture that runs, of those that the agents tell of; empty: none. An agent that does not answer is not asked again: the trace will say what
/// is wrong with it.
std::string running_capture(std::vector<std::unique_ptr<agent::Client>>& clients,
                            const std::function<void(std::size_t)>& asked) {
    std::vector<std::optional<fbs::StatusReplyT>> told(clients.size());
    agent::at_once(
        clients.size(),
        [&](std::size_t n) {
            if (clients[n] == nullptr) {
                return;
            }
            auto status = clients[n]->ask<fbs::StatusReplyT>(fbs::StatusRequestT{});
            if (status) {
                told[n] = std::move(*status);
            } else {
                clients[n].reset();
            }
        },
        asked);
    for (const auto& status : told) {
        if (status && (status->capturing || status->leading != 0)) {
            return agent::capture_name(status->leading != 0 ? status->leading
                                                            : status->capture_id) +
                   " on node " + status->node +
                   (status->asker.empty() ? "" : " (asked for by " + one_line(status->asker) + ")");
        }
    }
    return "";
}

}  // namespace

Awaited await_free(const Agents& agents, SignalGuard& signals, Progress& progress) {
    constexpr int kBetweenMs = 250;
    std::vector<std::unique_ptr<agent::Client>> clients(agents.endpoints.size());
    agent::at_once(clients.size(), [&](std::size_t n) {
        auto client = agents.connect(agents.endpoints[n]);
        clients[n] = client ? std::move(*client) : nullptr;
    });
    std::function<void(std::size_t)> asked = [&](std::size_t done) {
        progress.tell("asking whether another capture runs", done, clients.size());
    };
    for (bool waited = false;; waited = true) {
        if (const int signal = end_signal(signals); signal != 0) {
            return {signal, waited};
        }
        const std::string holder = running_capture(clients, asked);
        if (holder.empty()) {
            return {end_signal(signals), waited};
        }
        progress.tell("waiting for the end of " + holder, 0, 0, true);
        asked = {};
        pollfd waiting{signals.descriptor(), POLLIN, 0};
        ::poll(&waiting, 1, kBetweenMs);
    }
}

}  // namespace ringside::tools
