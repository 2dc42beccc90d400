// The agents of a job, wherever they are: noted in the user's home, named by Slurm, or in a directory of this host.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/control/key.hpp"
#include "schema/result.hpp"
#include "tools/ringside/command.hpp"

namespace ringside::tools {

struct JobAgents {
    std::vector<std::string> endpoints;  ///< the first one answers, where any does
    std::optional<agent::Key> key;       ///< the job's; none: its user has none
};

/// Nodes that Slurm gave to the job and where no agent is found are among them, so that who asks hears of them.
/// @param job       a Slurm job's id (4242, 4242_7, 4242+1), or RINGSIDE_JOB
/// @param key_file  the user's key; empty: the default one, and where that can't be read, that is said and there is none
/// @param hosts     their endpoints, where the user has named them
/// @param peers_of  HOST, HOST:PORT or ipc:///PATH of one of them, where that one is to be asked for the others instead
/// Where only this host's can be asked and the job has more nodes, that is said on stderr.
/// @errors Usage: no such name; NoAgent: none found; what the one of peers_of says; as agent::find_key
Result<JobAgents> find_job_agents(const std::string& job, const std::string& key_file,
                                  const std::vector<std::string>& hosts = {},
                                  const std::string& peers_of = "");

}  // namespace ringside::tools
