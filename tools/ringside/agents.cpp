// Endpoints from options.
#include "tools/ringside/agents.hpp"

#include <CLI/CLI.hpp>
#include <utility>

#include "agent/control/endpoint.hpp"
#include "tools/ringside/options.hpp"

namespace ringside::tools {

void add_agent_options(CLI::App& verb, AgentChoice& choice) {
    verb.add_option("--hosts", choice.hosts,
                    "agents to ask, ipc:///PATH or HOST:PORT, with commas; the first one leads. "
                    "Default: the agent of this user's job directory (RINGSIDE_DIR, RINGSIDE_JOB)")
        ->type_name("E,E");
    verb.add_option("--key", choice.key_file,
                    "key file for HOST:PORT, from `ringside keygen` (RINGSIDE_KEY, else "
                    "~/.ringside/key)")
        ->type_name("FILE");
}

Result<Agents> agents_of(const AgentChoice& choice) {
    Agents agents;
    if (choice.hosts.empty()) {
        agents.endpoints = {agent::default_endpoint(agent::default_root(), agent::default_job())};
    } else {
        auto hosts = parse_hosts(choice.hosts);
        if (!hosts) {
            return hosts.error();
        }
        agents.endpoints = std::move(*hosts);
    }
    auto key = agent::find_key(choice.key_file);
    if (!key) {
        return key.error();
    }
    agents.key = std::move(*key);
    return agents;
}

}  // namespace ringside::tools
