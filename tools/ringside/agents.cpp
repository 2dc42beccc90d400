// Endpoints from options.
#include "tools/ringside/agents.hpp"

#include <CLI/CLI.hpp>
#include <utility>

#include "agent/control/endpoint.hpp"
#include "tools/ringside/job_agents.hpp"
#include "tools/ringside/options.hpp"

namespace ringside::tools {

void add_agent_options(CLI::App& verb, AgentChoice& choice) {
    CLI::Option* const job =
        verb.add_option("--job", choice.job,
                        "the agents of this job, on all its nodes: a Slurm job's id (4242, 4242_7, "
                        "4242+1), or RINGSIDE_JOB")
            ->type_name("ID");
    verb.add_option("--hosts", choice.hosts,
                    "agents to ask, ipc:///PATH or HOST:PORT, with commas; the first one leads. "
                    "Default: the agent of this user's job directory (RINGSIDE_DIR, RINGSIDE_JOB)")
        ->type_name("E,E")
        ->excludes(job);
    verb.add_option("--key", choice.key_file,
                    "key file for HOST:PORT, from `ringside keygen` (RINGSIDE_KEY, else "
                    "~/.ringside/key)")
        ->type_name("FILE");
}

Result<Agents> agents_of(const AgentChoice& choice) {
    Agents agents;
    if (!choice.job.empty()) {
        auto found = find_job_agents(choice.job, choice.key_file);
        if (!found) {
            return found.error();
        }
        agents.endpoints = std::move(found->endpoints);
        agents.key = std::move(found->key);
        return agents;
    }
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
