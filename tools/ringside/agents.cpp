// Endpoints from options.
#include "tools/ringside/agents.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "agent/control/endpoint.hpp"
#include "tools/ringside/options.hpp"

namespace ringside::tools {

namespace {

namespace fs = std::filesystem;

/// Those of a job's directories on this host: `ID`, and `ID.NODE` where several nodes share it.
Result<std::vector<std::string>> endpoints_of_job(const std::string& job) {
    if (const auto checked = agent::check_name("--job", job); !checked) {
        return checked.error();
    }
    const std::string root = agent::default_root();
    std::vector<std::string> endpoints;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(root, error)) {
        const std::string name = entry.path().filename().string();
        if (name != job && name.rfind(job + ".", 0) != 0) {
            continue;
        }
        const std::string endpoint = agent::default_endpoint(root, name);
        const auto socket = agent::socket_path(endpoint);
        if (socket && fs::exists(*socket, error)) {
            endpoints.push_back(endpoint);
        }
    }
    if (endpoints.empty()) {
        return Error{ErrorCode::kNoAgent,
                     "find the agents of job " + job + ": none in " + root +
                         " on this host; start its tasks through ringside-wrap, or name agents "
                         "elsewhere with --hosts"};
    }
    std::sort(endpoints.begin(), endpoints.end());
    return endpoints;
}

}  // namespace

void add_agent_options(CLI::App& verb, AgentChoice& choice) {
    CLI::Option* const job =
        verb.add_option("--job", choice.job,
                        "the agents of this job on this host: a Slurm job's id, or RINGSIDE_JOB")
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
        auto endpoints = endpoints_of_job(choice.job);
        if (!endpoints) {
            return endpoints.error();
        }
        agents.endpoints = std::move(*endpoints);
    } else if (choice.hosts.empty()) {
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
