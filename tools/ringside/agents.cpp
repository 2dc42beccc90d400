// Endpoints from options.
#include "tools/ringside/agents.hpp"

#include <fcntl.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "agent/control/endpoint.hpp"
#include "agent/control/file_lock.hpp"
#include "agent/control/held_jobs.hpp"
#include "agent/control/job_folder.hpp"
#include "tools/ringside/job_agents.hpp"
#include "tools/ringside/job_files.hpp"
#include "tools/ringside/options.hpp"
#include "tools/ringside/process.hpp"
#include "tools/ringside/traced_command.hpp"

namespace ringside::tools {

namespace {

/// Those of all job directories that somebody holds, where a resident agent lives; else nothing.
Agents agents_beneath(const std::string& root) {
    Agents agents;
    const Descriptor folder(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!agent::is_held(folder.number(), agent::kResidentName)) {
        return agents;
    }
    agents.resident = read_small(folder.number(), agent::kResidentName);
    agents.resident = agents.resident.substr(0, agents.resident.find('\n'));
    for (const std::string& job : agent::held_jobs(root)) {
        agents.endpoints.push_back(agent::default_endpoint(root, job));
    }
    return agents;
}

/// Each agent takes two, and the usual soft limit of 1024 is there for programs that select(2).
void allow_many_descriptors() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)::setrlimit(RLIMIT_NOFILE, &limit);
    }
}

bool names_no_job() {
    return variable("RINGSIDE_JOB").empty() && variable("SLURM_JOB_ID").empty();
}

}  // namespace

void add_agent_options(CLI::App& verb, AgentChoice& choice) {
    CLI::Option* const job =
        verb.add_option("--job", choice.job,
                        "the agents of this job, on all its nodes: a Slurm job's id (4242, 4242_7, "
                        "4242+1), or RINGSIDE_JOB")
            ->type_name("ID");
    CLI::Option* const hosts =
        verb.add_option(
                "--hosts", choice.hosts,
                "agents to ask, ipc:///PATH or HOST:PORT, with commas; the first one leads. "
                "Default: the agent of this user's job directory (RINGSIDE_DIR, "
                "RINGSIDE_JOB). With --job: those of the job that ringside-wrap has started, "
                "wherever it does not find them")
            ->type_name("E,E");
    verb.add_option("--peers-of", choice.peers_of,
                    "with --job: all of its agents that this one of them knows of, itself too. "
                    "HOST (at the ports that follow from the job's id), HOST:PORT or ipc:///PATH")
        ->type_name("E")
        ->needs(job)
        ->excludes(hosts);
    verb.add_option("--key", choice.key_file,
                    "key file for HOST:PORT, from `ringside keygen` (RINGSIDE_KEY, else "
                    "~/.ringside/key)")
        ->type_name("FILE");
}

Result<Agents> agents_of(const AgentChoice& choice) {
    allow_many_descriptors();
    Agents agents;
    if (!choice.hosts.empty()) {
        auto hosts = parse_hosts(choice.hosts);
        if (!hosts) {
            return hosts.error();
        }
        agents.endpoints = std::move(*hosts);
    }
    if (!choice.job.empty()) {
        auto found =
            find_job_agents(choice.job, choice.key_file, agents.endpoints, choice.peers_of);
        if (!found) {
            return found.error();
        }
        agents.endpoints = std::move(found->endpoints);
        agents.key = std::move(found->key);
        return agents;
    }
    if (choice.hosts.empty() && choice.all_here && names_no_job()) {
        agents = agents_beneath(agent::default_root());
    }
    if (agents.endpoints.empty() && agents.resident.empty()) {
        agents.endpoints = {agent::default_endpoint(agent::default_root(), agent::default_job())};
    }
    auto key = agent::find_key(choice.key_file);
    if (key) {
        agents.key = std::move(*key);
        return agents;
    }
    // Who is on this host needs none.
    const bool far = std::any_of(agents.endpoints.begin(), agents.endpoints.end(),
                                 [](const std::string& each) { return agent::is_tcp(each); });
    if (far || !choice.key_file.empty()) {
        return key.error();
    }
    return agents;
}

}  // namespace ringside::tools
