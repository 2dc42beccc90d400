// The agents that a verb speaks to: `--hosts E,E`, those of `--job ID`, or the one of this user's job directory.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/control/at_once.hpp"
#include "agent/control/client.hpp"
#include "agent/control/key.hpp"
#include "schema/result.hpp"
#include "tools/ringside/command.hpp"
#include "tools/ringside/progress.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own
class App;
}

namespace ringside::tools {

/// What the user said about them.
struct AgentChoice {
    std::string hosts;
    std::string job;
    std::string peers_of;
    std::string key_file;
    bool all_here =
        false;  ///< where nothing is said and the user's resident agent lives: all on this host
};

/// How to reach them.
struct Agents {
    std::vector<std::string>
        endpoints;         ///< at least one, but for a resident agent's; the first one leads
    std::string resident;  ///< whose they are, in its own words; empty: none was asked for
    std::optional<agent::Key> key;

    Result<std::unique_ptr<agent::Client>> connect(const std::string& endpoint) const {
        return agent::Client::connect(endpoint, key ? &*key : nullptr);
    }
};

/// Adds `--job`, `--hosts` and `--key` to a verb; `choice` outlives the parser.
void add_agent_options(CLI::App& verb, AgentChoice& choice);

/// The agents that were chosen; without `--hosts` and `--job` the default endpoint of this user's job directory, or all_here. From then on this process
/// may have as many descriptors open as the system lets it: not for verbs that start a command, which keeps the user's own limit.
/// @errors Usage: as parse_hosts; NoAgent: the job has none here; as agent::find_key
Result<Agents> agents_of(const AgentChoice& choice);

/// Asks all one plain question, many at the same time.
/// @return in the order of the endpoints
template <class Reply, class Request>
std::vector<Result<Reply>> ask_all(const Agents& agents, const Request& request) {
    const std::vector<std::string>& endpoints = agents.endpoints;
    const std::string what = endpoints.size() == 1
                                 ? "asking " + endpoints.front()
                                 : "asking " + std::to_string(endpoints.size()) + " agents";
    Progress progress(what);
    std::vector<Result<Reply>> replies(endpoints.size(), Result<Reply>(Error{}));
    agent::at_once(
        endpoints.size(),
        [&](std::size_t n) {
            auto client = agents.connect(endpoints[n]);
            replies[n] =
                client ? (*client)->template ask<Reply>(request) : Result<Reply>(client.error());
        },
        [&](std::size_t done) { progress.tell(what, done, endpoints.size()); });
    return replies;
}

/// Asks all one plain question, and goes on where one can't answer.
/// @param take   called with each endpoint and its reply, in their order
/// @return 0, or the exit code of the first error; each error has been said
template <class Reply, class Request, class Take>
int ask_each(const Agents& agents, const Request& request, const Take& take) {
    int status = kExitGood;
    const auto replies = ask_all<Reply>(agents, request);
    for (std::size_t n = 0; n < replies.size(); ++n) {
        if (replies[n]) {
            take(agents.endpoints[n], *replies[n]);
            continue;
        }
        const int code = fail(replies[n].error());
        status = status == kExitGood ? code : status;
    }
    return status;
}

}  // namespace ringside::tools
