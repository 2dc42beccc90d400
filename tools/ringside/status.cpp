// `ringside status`: who the agents are and what they do.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "agent/control/endpoint.hpp"
#include "schema/units.hpp"
#include "tools/ringside/agents.hpp"
#include "tools/ringside/command.hpp"
#include "tools/ringside/json_text.hpp"
#include "tools/ringside/window_report.hpp"
#include "tools/ringside/words.hpp"

namespace ringside::tools {

namespace {

struct StatusOptions {
    AgentChoice agents;
    bool json = false;
};

nlohmann::json as_json(const std::string& asked, const fbs::StatusReplyT& reply) {
    return {
        {"node", reply.node},
        {"host", reply.host},
        {"endpoint", asked},
        {"version", reply.version},
        {"pid", reply.pid},
        {"job", reply.job},
        {"directory", reply.directory},
        {"output", reply.output},
        {"capturing", reply.capturing},
        {"capture_id", reply.capture_id},
        {"asker", reply.asker},
        {"processes", reply.processes},
        {"uptime_ns", reply.uptime_ns},
        {"events", reply.events},
        {"lost", reply.lost},
        {"bytes", reply.bytes},
        {"record_cost_ns", reply.record_cost_ns},
        {"armed", reply.window != nullptr},
        {"window", reply.window ? window_json(*reply.window) : nlohmann::json(nullptr)},
        {"left_pieces", reply.left_pieces},
        {"left_bytes", reply.left_bytes},
        {"notice", reply.notice},
        {"recovered", reply.recovered},
        {"total_events", reply.total_events},
        {"total_lost", reply.total_lost},
        {"total_bytes", reply.total_bytes},
        {"total_iterations", reply.total_iterations},
        {"iteration_ns", reply.iteration_ns},
        {"agent_cpu_ns", reply.cpu_ns},
        {"agent_resident_bytes", reply.resident_bytes},
        {"requests", reply.requests},
        {"refused", reply.refused},
        {"damaged", reply.damaged},
    };
}

std::string as_text(const std::string& asked, const fbs::StatusReplyT& reply) {
    const std::string armed = reply.window ? "armed" : "idle";
    const std::string led = reply.leading != 0 ? "leading a trace" : armed;
    const std::string state = (reply.capturing ? "capturing" : led) +
                              (reply.asker.empty() ? "" : " for " + one_line(reply.asker));
    const std::string which =
        reply.capturing ? "so far " : (reply.capture_id != 0 ? "last capture " : "");
    std::string counts = which + grouped(reply.events) + " events, " + grouped(reply.lost) +
                         " lost, " + bytes_text(reply.bytes);
    std::vector<std::vector<std::string>> rows = {
        {"  agent", "pid " + std::to_string(reply.pid) + ", version " + reply.version + ", up " +
                        time_text(reply.uptime_ns)},
        {"  endpoint", asked},
        {"  job", reply.job + " in " + reply.directory},
        {"  output", reply.output},
        {"  processes", std::to_string(reply.processes)},
        {"  records", counts},
    };
    if (reply.window) {
        rows.push_back({"  window", window_text(*reply.window)});
    }
    if (reply.left_pieces != 0) {
        rows.push_back({"  window", left_text(reply.left_pieces, reply.left_bytes)});
    }
    const auto line = [](const char* before, const std::string& text) {
        return text.empty() ? "" : before + one_line(text) + "\n";
    };
    return "node " + reply.node + " on " + reply.host + ": " + state + "\n" +
           line("  ", reply.notice) + columns(rows) + line("  found ", reply.recovered);
}

int run_status(const StatusOptions& options) {
    const auto agents = agents_of(options.agents);
    if (!agents) {
        return fail(agents.error());
    }
    nlohmann::json list = nlohmann::json::array();
    std::string text;
    if (!agents->resident.empty()) {
        text = agents->resident + ": " + std::to_string(agents->endpoints.size()) +
               (agents->endpoints.size() == 1 ? " job directory" : " job directories") +
               " with an agent in " + agent::default_root() + "\n";
    }
    const int status = ask_each<fbs::StatusReplyT>(
        *agents, fbs::StatusRequestT{},
        [&](const std::string& endpoint, const fbs::StatusReplyT& reply) {
            list.push_back(as_json(endpoint, reply));
            text += as_text(endpoint, reply);
        });
    const auto printed = print(options.json ? json_text(list) : text);
    return printed ? status : fail(printed.error());
}

}  // namespace

Action setup_status(CLI::App& verb, const Words&) {
    const auto options = std::make_shared<StatusOptions>();
    add_agent_options(verb, options->agents);
    options->agents.all_here = true;
    verb.add_flag("--json", options->json, "one JSON array, an object a node");
    verb.footer(
        "Examples:\n"
        "  ringside status\n"
        "  ringside status --hosts ipc:///tmp/a.sock,ipc:///tmp/b.sock --json\n"
        "Without --job and --hosts, and where this user's resident agent lives (`ringside agent "
        "--all`): all agents on this host.\n"
        "Exit status: 0 all answered, 2 usage, 4 no agent there, 5 refused");
    return [options] { return run_status(*options); };
}

}  // namespace ringside::tools
