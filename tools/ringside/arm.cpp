// `ringside arm` and `ringside disarm`: a window on each node that is named, or none any more.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "schema/control_page.hpp"
#include "tools/ringside/agents.hpp"
#include "tools/ringside/command.hpp"
#include "tools/ringside/json_text.hpp"
#include "tools/ringside/options.hpp"
#include "tools/ringside/window_report.hpp"
#include "tools/ringside/words.hpp"

namespace ringside::tools {

namespace {

struct ArmOptions {
    AgentChoice agents;
    std::string keep = "10s";
    std::string max_bytes;
    std::vector<std::string> pids;
    std::string sources;
    bool record_shapes = false;
    bool profile_memory = false;
    bool json = false;
};

struct DisarmOptions {
    AgentChoice agents;
    bool json = false;
};

Result<fbs::ArmRequestT> request_of(const ArmOptions& options) {
    const auto keep = parse_duration_ms(options.keep, "--keep");
    if (!keep) {
        return keep.error();
    }
    const auto pids = parse_pids(options.pids);
    if (!pids) {
        return pids.error();
    }
    const auto sources = parse_sources(options.sources);
    if (!sources) {
        return sources.error();
    }
    fbs::ArmRequestT request;
    if (!options.max_bytes.empty()) {
        const auto max_bytes = parse_bytes(options.max_bytes);
        if (!max_bytes) {
            return max_bytes.error();
        }
        request.max_bytes = *max_bytes;
    }
    request.keep_ms = *keep;
    request.pids = *pids;
    request.source_mask = *sources;
    request.options = schema::capture_options(options.record_shapes, options.profile_memory);
    return request;
}

std::string who(const std::string& node, const std::string& host) {
    return "node " + node + (host.empty() ? "" : " on " + host) + ": ";
}

int print_answers(bool json, const nlohmann::json& list, const std::string& text, int status) {
    if (status != kExitGood && list.empty()) {
        return status;
    }
    const auto printed = print(json ? json_text(list) : text);
    return printed ? status : fail(printed.error());
}

int run_arm(const ArmOptions& options) {
    const auto agents = agents_of(options.agents);
    if (!agents) {
        return fail(agents.error());
    }
    const auto request = request_of(options);
    if (!request) {
        return fail(request.error());
    }
    nlohmann::json list = nlohmann::json::array();
    std::string text;
    const int status = ask_each<fbs::ArmReplyT>(
        *agents, *request, [&](const std::string& endpoint, const fbs::ArmReplyT& reply) {
            const fbs::WindowStatusT window = reply.window ? *reply.window : fbs::WindowStatusT();
            list.push_back({{"node", reply.node},
                            {"host", reply.host},
                            {"endpoint", endpoint},
                            {"changed", reply.changed},
                            {"processes", reply.processes},
                            {"attached", reply.attached},
                            {"slowest_attach_ns", reply.slowest_attach_ns},
                            {"window", window_json(window)}});
            text += who(reply.node, reply.host) +
                    (reply.changed ? "armed as before, " : "armed, ") + window_text(window) + "; " +
                    grouped(reply.attached) + " of " + grouped(reply.processes) +
                    " processes attached\n";
        });
    return print_answers(options.json, list, text, status);
}

int run_disarm(const DisarmOptions& options) {
    const auto agents = agents_of(options.agents);
    if (!agents) {
        return fail(agents.error());
    }
    nlohmann::json list = nlohmann::json::array();
    std::string text;
    const int status = ask_each<fbs::DisarmReplyT>(
        *agents, fbs::DisarmRequestT{},
        [&](const std::string& endpoint, const fbs::DisarmReplyT& reply) {
            list.push_back(
                {{"node", reply.node},
                 {"host", reply.host},
                 {"endpoint", endpoint},
                 {"was_armed", reply.window != nullptr},
                 {"left_pieces", reply.left_pieces},
                 {"window", reply.window ? window_json(*reply.window) : nlohmann::json(nullptr)}});
            text += who(reply.node, reply.host) +
                    (reply.window ? "disarmed; it was: " + window_text(*reply.window)
                                  : std::string("was not armed"));
            text += reply.left_pieces == 0 ? ""
                                           : "; removed " + std::to_string(reply.left_pieces) +
                                                 " pieces that a dead agent had left";
            text += "\n";
        });
    return print_answers(options.json, list, text, status);
}

}  // namespace

Action setup_arm(CLI::App& verb, const Words&) {
    const auto options = std::make_shared<ArmOptions>();
    add_agent_options(verb, options->agents);
    verb.add_option("--keep", options->keep,
                    "how far back the window reaches: 2s, 1.5m; default 10s")
        ->type_name("TIME");
    verb.add_option("--max-bytes", options->max_bytes,
                    "bound of the window's size on each node: 64M, 2G; default 256M, and no more "
                    "than half of what is free in shared memory")
        ->type_name("SIZE");
    verb.add_option("--pid", options->pids, "these processes only; repeated or with commas")
        ->type_name("N");
    verb.add_option("--sources", options->sources,
                    "these only, with commas: " + source_names() + "; default all")
        ->type_name("S,S");
    verb.add_flag("--record-shapes", options->record_shapes,
                  "operators with their input shapes; costs a microsecond each");
    verb.add_flag("--profile-memory", options->profile_memory,
                  "memory that tensors take and give back, the CPU's and CUDA's");
    verb.add_flag("--json", options->json, "one JSON array, an object a node");
    verb.footer(
        "Armed, everything is recorded, and the oldest goes by time and by size. It costs the job "
        "what a capture costs.\n"
        "Armed again, it changes the bounds and keeps what it holds. A window ends with `ringside "
        "disarm` and with its agent.\n"
        "Examples:\n"
        "  ringside arm --keep 30s --max-bytes 512M\n"
        "  ringside trace --history 5s --duration 1s\n"
        "  ringside disarm\n"
        "Exit status: 0 all armed, 2 usage or no room, 4 no agent there, 5 refused (a capture "
        "runs, or it is armed for something else)");
    return [options] { return run_arm(*options); };
}

Action setup_disarm(CLI::App& verb, const Words&) {
    const auto options = std::make_shared<DisarmOptions>();
    add_agent_options(verb, options->agents);
    verb.add_flag("--json", options->json, "one JSON array, an object a node");
    verb.footer(
        "Removes what the window holds, and what the window of an agent that died has left.\n"
        "Examples:\n"
        "  ringside disarm\n"
        "Exit status: 0 none is armed any more, 2 usage, 4 no agent there, 5 refused (a capture is "
        "being cut out of it)");
    return [options] { return run_disarm(*options); };
}

}  // namespace ringside::tools
