// The agents that a verb speaks to: `--hosts E,E`, or the one of this user's job directory.
#pragma once

#include <string>
#include <vector>

#include "agent/control/client.hpp"
#include "schema/result.hpp"
#include "tools/ringside/command.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own
class App;
}

namespace ringside::tools {

/// Adds `--hosts` to a verb; `hosts` outlives the parser.
void add_hosts_option(CLI::App& verb, std::string& hosts);

/// @param hosts  the option's text; empty: the default endpoint of this user's job directory
/// @errors Usage, Refused: as parse_hosts
Result<std::vector<std::string>> endpoints_of(const std::string& hosts);

/// Asks each endpoint one plain question, and goes on where one can't answer.
/// @param take   called with each endpoint and its reply
/// @return 0, or the exit code of the first error; each error has been said
template <class Reply, class Request, class Take>
int ask_each(const std::vector<std::string>& endpoints, const Take& take) {
    int status = kExitGood;
    for (const std::string& endpoint : endpoints) {
        auto client = agent::Client::connect(endpoint);
        auto reply =
            client ? (*client)->template ask<Reply>(Request{}) : Result<Reply>(client.error());
        if (reply) {
            take(endpoint, *reply);
            continue;
        }
        const int code = fail(reply.error());
        status = status == kExitGood ? code : status;
    }
    return status;
}

}  // namespace ringside::tools
