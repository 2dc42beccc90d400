// Whom a trace is for: --pid, --rank, --exe, --limit, --host, --sources. They combine by AND.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/ringside/agents.hpp"
#include "tools/ringside/command.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own
class Option;
}

namespace ringside::tools {

/// As it was typed.
struct TraceChoice {
    std::vector<std::string> pids;
    std::vector<std::string> ranks;
    std::vector<std::string> executables;
    std::vector<std::string> hosts;
    std::string sources;
    std::uint32_t limit = 0;  ///< 0: none
};

/// Adds the options to a verb; `choice` outlives the parser.
/// @return them
std::vector<CLI::Option*> add_choice_options(CLI::App& verb, TraceChoice& choice);

/// Puts it into a request, but for the hosts.
/// @errors Usage
Result<void> put_choice(const TraceChoice& choice, fbs::TraceRequestT& request);

/// Leaves of the agents those whose node or host has one of the names, all where none is given. The first of them leads.
/// @errors NothingMatched: a name that none has, with those that there are; as ask_each() where nobody answers
Result<Agents> agents_on(const std::vector<std::string>& hosts, Agents agents);

}  // namespace ringside::tools
