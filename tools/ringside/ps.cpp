// `ringside ps`: the processes that the agents see, what each source reached in them, what was lost.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/ringside/agents.hpp"
#include "tools/ringside/command.hpp"
#include "tools/ringside/json_text.hpp"
#include "tools/ringside/sources_report.hpp"
#include "tools/ringside/window_report.hpp"
#include "tools/ringside/words.hpp"

namespace ringside::tools {

namespace {

struct PsOptions {
    AgentChoice agents;
    bool json = false;
};

nlohmann::json as_json(const std::string& node, const fbs::ProcessStatusT& status) {
    const fbs::ProcessT& process = *status.process;
    return {
        {"node", node},
        {"pid", process.pid},
        {"host_pid", process.host_pid},
        {"parent_pid", process.parent_pid},
        {"rank", process.rank},
        {"worker", process.worker_name},
        {"worker_id", process.worker_id},
        {"executable", process.executable},
        {"command", process.command_line},
        {"alive", status.alive},
        {"attached", status.attached},
        {"sources", sources_json(process.sources)},
        {"lanes", status.lanes},
        {"events", status.events},
        {"lost", status.lost},
        {"verdict", verdict_word(status.verdict)},
        {"reason", status.reason},
    };
}

/// In a container a process has a pid of its own there; here it is known by the host's.
std::string pid_text(const fbs::ProcessT& process) {
    std::string pid = std::to_string(process.pid);
    if (process.host_pid == 0 || process.host_pid == process.pid) return pid;
    return pid + " (here " + std::to_string(process.host_pid) + ")";
}

std::string state_text(const fbs::ProcessStatusT& status) {
    if (status.verdict == fbs::Verdict::Hung || status.verdict == fbs::Verdict::NotInjected) {
        return verdict_word(status.verdict) + " (" + one_line(status.reason) + ")";
    }
    return status.alive ? "alive" : verdict_word(status.verdict);
}

std::vector<std::string> as_row(const std::string& node, const fbs::ProcessStatusT& status) {
    const fbs::ProcessT& process = *status.process;
    return {
        node,
        pid_text(process),
        process.rank < 0 ? "-" : std::to_string(process.rank),
        process.worker_name.empty() ? "-" : process.worker_name,
        state_text(status),
        grouped(status.events),
        grouped(status.lost),
        sources_text(process.sources, true),
        command_text(process),
    };
}

int run_ps(const PsOptions& options) {
    const auto agents = agents_of(options.agents);
    if (!agents) {
        return fail(agents.error());
    }
    nlohmann::json list = nlohmann::json::array();
    std::vector<std::vector<std::string>> rows = {
        {"NODE", "PID", "RANK", "WORKER", "STATE", "EVENTS", "LOST", "SOURCES", "COMMAND"}};
    std::string armed;
    const int status = ask_each<fbs::ProcessesReplyT>(
        *agents, fbs::ProcessesRequestT{},
        [&](const std::string&, const fbs::ProcessesReplyT& reply) {
            if (reply.window) {
                armed += "node " + reply.node + " is armed: " + window_text(*reply.window) + "\n";
            }
            for (const auto& process : reply.processes) {
                if (process != nullptr && process->process != nullptr) {
                    list.push_back(as_json(reply.node, *process));
                    list.back()["armed"] = reply.window != nullptr;
                    rows.push_back(as_row(reply.node, *process));
                }
            }
        });
    if (status != kExitGood && list.empty()) {
        return status;
    }
    const auto printed = print(options.json ? json_text(list) : columns(rows) + armed);
    return printed ? status : fail(printed.error());
}

}  // namespace

Action setup_ps(CLI::App& verb, const Words&) {
    const auto options = std::make_shared<PsOptions>();
    add_agent_options(verb, options->agents);
    options->agents.all_here = true;
    verb.add_flag("--json", options->json, "one JSON array, an object a process");
    verb.footer(
        "Examples:\n"
        "  ringside ps\n"
        "  ringside ps --hosts ipc:///tmp/a.sock,ipc:///tmp/b.sock --json\n"
        "Without --job and --hosts, and where this user's resident agent lives (`ringside agent "
        "--all`): all agents on this host.\n"
        "Exit status: 0 all answered, 2 usage, 4 no agent there, 5 refused");
    return [options] { return run_ps(*options); };
}

}  // namespace ringside::tools
