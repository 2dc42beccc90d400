// Reads whom the user wants, and asks the agents for their names.
#include "tools/ringside/trace_choice.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "tools/ringside/options.hpp"
#include "tools/ringside/words.hpp"

namespace ringside::tools {

namespace {

/// An agent that has answered.
struct Named {
    std::string endpoint;
    std::string node;
    std::string host;

    bool is(const std::string& name) const { return name == node || name == host; }
};

std::string list_of(const std::vector<Named>& agents) {
    std::string text;
    for (const Named& agent : agents) {
        text += (text.empty() ? "" : ", ") + agent.node +
                (agent.host == agent.node ? "" : " on " + agent.host);
    }
    return text;
}

}  // namespace

std::vector<CLI::Option*> add_choice_options(CLI::App& verb, TraceChoice& choice) {
    return {
        verb.add_option("--pid", choice.pids, "these processes only; repeated or with commas")
            ->type_name("N"),
        verb.add_option("--rank", choice.ranks, "processes of these ranks only")->type_name("R,R"),
        verb.add_option("--exe", choice.executables,
                        "processes of this executable only, by its file's name or whole path as "
                        "`ringside ps` tells it; repeated for more")
            ->type_name("NAME"),
        verb.add_option(
                "--limit", choice.limit,
                "at most so many processes a node, lowest rank first, then pid; what has no "
                "framework comes last")
            ->type_name("N")
            ->check(CLI::PositiveNumber),
        verb.add_option("--host", choice.hosts,
                        "these nodes only, by the node's or the host's name")
            ->type_name("NAME,NAME"),
        verb.add_option("--sources", choice.sources,
                        "what these sources record only: " + source_names() + "; default all")
            ->type_name("S,S"),
    };
}

Result<void> put_choice(const TraceChoice& choice, fbs::TraceRequestT& request) {
    auto pids = parse_pids(choice.pids);
    if (!pids) {
        return pids.error();
    }
    auto ranks = parse_ranks(choice.ranks);
    if (!ranks) {
        return ranks.error();
    }
    const auto sources = parse_sources(choice.sources);
    if (!sources) {
        return sources.error();
    }
    request.pids = std::move(*pids);
    request.ranks = std::move(*ranks);
    request.executables = choice.executables;
    request.limit = choice.limit;
    request.source_mask = *sources;
    return {};
}

Result<Agents> agents_on(const std::vector<std::string>& hosts, Agents agents) {
    const auto names = parse_names(hosts, "--host");
    if (!names) {
        return names.error();
    }
    if (names->empty()) {
        return agents;
    }
    std::vector<Named> there;
    const int status = ask_each<fbs::StatusReplyT>(
        agents, fbs::StatusRequestT{},
        [&](const std::string& endpoint, const fbs::StatusReplyT& reply) {
            there.push_back({endpoint, reply.node, reply.host});
        });
    for (const std::string& name : *names) {
        const bool known = std::any_of(there.begin(), there.end(),
                                       [&](const Named& agent) { return agent.is(name); });
        if (known) {
            continue;
        }
        return Error{there.empty() ? static_cast<ErrorCode>(status) : ErrorCode::kNothingMatched,
                     "--host " + name + ": no agent that answers has this node or host; " +
                         (there.empty() ? "none answers" : "there are " + list_of(there))};
    }
    agents.endpoints.clear();
    for (const Named& agent : there) {
        if (std::any_of(names->begin(), names->end(),
                        [&](const std::string& name) { return agent.is(name); })) {
            agents.endpoints.push_back(agent.endpoint);
        }
    }
    return agents;
}

}  // namespace ringside::tools
