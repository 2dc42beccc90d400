// Asks the agents four times a second.
#include "tools/ringside/await_free.hpp"

#include <poll.h>

#include <memory>
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

/// The first capture that runs, of those that the agents tell of; empty: none.
std::string running_capture(std::vector<std::unique_ptr<agent::Client>>& clients,
                            SignalGuard& signals, int& signal) {
    for (auto& client : clients) {
        signal = signal != 0 ? signal : end_signal(signals);
        if (client == nullptr || signal != 0) {
            continue;
        }
        const auto status = client->ask<fbs::StatusReplyT>(fbs::StatusRequestT{});
        if (!status) {
            client.reset();  // the trace will say what is wrong with it
        } else if (status->capturing || status->leading != 0) {
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
    int signal = 0;
    std::vector<std::unique_ptr<agent::Client>> clients;
    for (const std::string& endpoint : agents.endpoints) {
        signal = signal != 0 ? signal : end_signal(signals);
        auto client = signal != 0 ? Result<std::unique_ptr<agent::Client>>(nullptr)
                                  : agents.connect(endpoint);
        clients.push_back(client ? std::move(*client) : nullptr);
    }
    for (bool waited = false;; waited = true) {
        const std::string holder = running_capture(clients, signals, signal);
        if (holder.empty() || signal != 0) {
            return {signal, waited};
        }
        progress.tell("waiting for the end of " + holder, 0, 0, true);
        pollfd waiting{signals.descriptor(), POLLIN, 0};
        ::poll(&waiting, 1, kBetweenMs);
    }
}

}  // namespace ringside::tools
