// `ringside agent`: becomes ringside-agent, so that one name on PATH is enough.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "agent/control/slurm_nodes.hpp"
#include "tools/ringside/command.hpp"
#include "tools/ringside/install_paths.hpp"
#include "tools/ringside/traced_command.hpp"

namespace ringside::tools {

namespace {

/// A step that joins a task of an array (`srun --overlap --jobid`) is not told so by Slurm's variables, and asked for by that name.
void tell_array_task() {
    const std::string id = variable("SLURM_JOB_ID");
    if (id.empty() || !variable("SLURM_ARRAY_JOB_ID").empty()) {
        return;
    }
    for (const agent::SlurmNode& node : agent::slurm_nodes(id)) {
        const std::size_t task = node.member.find('_');
        if (node.id == id && task != std::string::npos) {
            ::setenv("SLURM_ARRAY_JOB_ID", node.member.substr(0, task).c_str(), 1);
            ::setenv("SLURM_ARRAY_TASK_ID", node.member.substr(task + 1).c_str(), 1);
            return;
        }
    }
}

int become_agent(const Words& options) {
    const auto self = own_executable();
    const auto paths = self ? find_install_paths(*self) : Result<InstallPaths>(self.error());
    if (!paths) {
        return fail(paths.error());
    }
    if (std::find(options.begin(), options.end(), "--rendezvous") != options.end()) {
        tell_array_task();
    }
    Words words = {paths->agent};
    words.insert(words.end(), options.begin(), options.end());
    std::vector<char*> arguments;
    for (std::string& word : words) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    ::execv(paths->agent.c_str(), arguments.data());
    return fail({ErrorCode::kInternal, "start " + paths->agent + ": " + errno_text(errno)});
}

}  // namespace

Action setup_agent(CLI::App& verb, const Words& rest) {
    verb.footer(
        "All words after `agent` are ringside-agent's own; `ringside agent --help` shows them.");
    return [&rest] { return become_agent(rest); };
}

}  // namespace ringside::tools
