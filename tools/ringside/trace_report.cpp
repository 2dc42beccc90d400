// A TraceReply for people and for programs.
#include "tools/ringside/trace_report.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/ringside/command.hpp"
#include "tools/ringside/iteration_options.hpp"
#include "tools/ringside/json_text.hpp"
#include "tools/ringside/sources_report.hpp"
#include "tools/ringside/verdict_table.hpp"
#include "tools/ringside/words.hpp"

namespace ringside::tools {

namespace {

/// Beyond this a bound is no measurement: the node's clock was never seen.
constexpr std::int64_t kNoBoundNs = 86'400'000'000'000;
/// Of more nodes than these those that are well are told together.
constexpr std::size_t kMostListed = 256;

std::string clock_text(const fbs::TraceNodeT& node) {
    if (node.clock == nullptr || node.clock->bound_ns() > kNoBoundNs) {
        return "clock unknown";
    }
    return "clock " + time_text(node.clock->offset_ns()) + " +- " +
           time_text(node.clock->bound_ns());
}

double share_percent(const fbs::PerturbationT& cost) {
    constexpr double kPercent = 100;
    return cost.job_time_ns == 0 ? 0
                                 : kPercent * static_cast<double>(cost.cost_ns) /
                                       static_cast<double>(cost.job_time_ns);
}

/// What the records cost the job, by the price of one that the node measured.
std::int64_t overhead_ns(const fbs::TraceNodeT& node) {
    if (node.perturbation != nullptr) return static_cast<std::int64_t>(node.perturbation->cost_ns);
    return static_cast<std::int64_t>(static_cast<double>(node.records) * node.record_cost_ns);
}

/// "; history 3.2 s", and where that is not all that was asked: why.
std::string history_text(const fbs::TraceNodeT& node) {
    if (node.history_ns == 0 && node.window_note.empty()) {
        return "";
    }
    return "; history " + time_text(node.history_ns) +
           (node.window_note.empty() ? "" : " " + node.window_note);
}

/// The node's receipt; an agent of before it says what its records cost and no more.
std::string cost_text(const fbs::TraceNodeT& node) {
    std::string text = ", cost " + time_text(overhead_ns(node));
    if (node.perturbation == nullptr) return text + " (estimate)";
    const fbs::PerturbationT& cost = *node.perturbation;
    char share[32];
    std::snprintf(share, sizeof share, "%.4f %%", share_percent(cost));
    text += ", " + std::string(share) + " of its processes' " +
            time_text(static_cast<std::int64_t>(cost.job_time_ns)) + " (estimate)";
    if (cost.slowest_start_ns >= 0) text += ", slowest start " + time_text(cost.slowest_start_ns);
    return text + ", agent's CPU time " + time_text(cost.agent_cpu_ns);
}

std::string node_line(const fbs::TraceNodeT& node) {
    const std::string who = "node " + node.name + (node.host.empty() ? "" : " on " + node.host);
    if (node.not_meant) {
        return who + ": none of those that were asked for\n";
    }
    if (!node.error.empty() && node.path.empty()) {
        return who + ": " + node.error + "\n";
    }
    return who + ": " + grouped(node.records) + " records, " + grouped(node.lost) + " lost, " +
           bytes_text(node.bytes) + ", " + clock_text(node) + ", started " +
           time_text(node.start_delay_ns) + " late" + cost_text(node) + history_text(node) +
           (node.left_out == 0 ? "" : "; " + grouped(node.left_out) + " more left out by --limit") +
           (node.error.empty() ? "" : "; " + node.error) + "\n";
}

std::int64_t worst_bound_ns(const fbs::TraceReplyT& reply) {
    std::int64_t worst = 0;
    for (const auto& node : reply.nodes) {
        worst = std::max(worst, node->clock == nullptr ? 0 : node->clock->bound_ns());
    }
    return worst;
}

std::string clocks_line(const fbs::TraceReplyT& reply) {
    const std::int64_t bound = worst_bound_ns(reply);
    return "clocks: " +
           (bound > kNoBoundNs ? std::string("not all measured")
                               : "right within " + time_text(bound)) +
           "; starts within " + time_text(reply.start_spread_ns) + "; " +
           grouped(reply.order_violations) + " replies before their request beyond that\n";
}

nlohmann::json node_json(const fbs::TraceNodeT& node) {
    nlohmann::json json = {
        {"name", node.name},
        {"host", node.host},
        {"endpoint", node.endpoint},
        {"dump", node.path},
        {"bytes", node.bytes},
        {"records", node.records},
        {"lost", node.lost},
        {"error", node.error},
        {"start_delay_ns", node.start_delay_ns},
        {"record_cost_ns", node.record_cost_ns},
        {"overhead_estimate_ns", overhead_ns(node)},
        {"history_ns", node.history_ns},
        {"window_note", node.window_note},
        {"left_out", node.left_out},
        {"not_meant", node.not_meant},
        {"relay", node.relay},
    };
    if (node.perturbation != nullptr) {
        const fbs::PerturbationT& cost = *node.perturbation;
        json["perturbation"] = {
            {"records", cost.records},
            {"cost_ns", cost.cost_ns},
            {"job_time_ns", cost.job_time_ns},
            {"share_percent", share_percent(cost)},
            {"slowest_start_ns", cost.slowest_start_ns},
            {"agent_cpu_ns", cost.agent_cpu_ns},
        };
    }
    if (node.clock != nullptr) {
        json["clock"] = {
            {"reference_node_ns", node.clock->reference_node_ns()},
            {"offset_ns", node.clock->offset_ns()},
            {"drift_ppb", node.clock->drift_ppb()},
            {"bound_ns", node.clock->bound_ns()},
        };
    }
    return json;
}

nlohmann::json verdict_json(const fbs::TraceReplyT& reply, const fbs::ProcessVerdictT& process) {
    const bool placed = process.node < reply.nodes.size();
    nlohmann::json json = {
        {"node", placed ? reply.nodes[process.node]->name : ""},
        {"host", placed ? reply.nodes[process.node]->host : ""},
        {"pid", process.pid},
        {"host_pid", process.host_pid},
        {"rank", process.rank},
        {"executable", process.executable},
        {"command", process.command},
        {"sources", sources_json(process.sources)},
        {"verdict", verdict_word(process.verdict)},
        {"good", is_good(process.verdict, process.reason) && has_its_iterations(process)},
        {"reason", process.reason},
        {"events", process.events},
        {"lost", process.lost},
        {"bytes", process.bytes},
        {"start_delay_ns", process.start_delay_ns},
    };
    if (process.iterations != nullptr) {
        const fbs::IterationsT& had = *process.iterations;
        json["iterations"] = {
            {"name", had.name},   {"asked", had.asked},   {"count", had.count},
            {"first", had.first}, {"beside", had.beside},
        };
    }
    return json;
}

/// Those of the dumps, then the index's.
std::vector<std::string> paths_of(const fbs::TraceReplyT& reply) {
    std::vector<std::string> paths;
    for (const auto& node : reply.nodes) {
        paths.push_back(node->path);
    }
    paths.push_back(reply.job_index);
    std::erase(paths, "");
    return paths;
}

}  // namespace

int trace_status(const fbs::TraceReplyT& reply) {
    const bool nodes = std::all_of(reply.nodes.begin(), reply.nodes.end(), [](const auto& node) {
        return (node->error.empty() || node->not_meant) && node->lost == 0;
    });
    const bool verdicts =
        std::all_of(reply.verdicts.begin(), reply.verdicts.end(), [](const auto& process) {
            return is_good(process->verdict, process->reason) && has_its_iterations(*process);
        });
    return nodes && verdicts ? kExitGood : kExitNotAllGood;
}

std::string calls_line(const fbs::TraceReplyT& reply) {
    return "RPCs: " + grouped(reply.joined_requests) + " requests and " +
           grouped(reply.joined_replies) + " replies joined, " + grouped(reply.cut) + " cut, " +
           grouped(reply.orphans) + " orphans, " + grouped(reply.unfinished) + " unfinished" +
           (reply.ambiguous == 0 ? "" : ", " + grouped(reply.ambiguous) + " ambiguous");
}

/// All of them, or, of very many, those that say more than that all is well, and the sum of the others.
std::string node_lines(const fbs::TraceReplyT& reply) {
    const bool all = reply.nodes.size() <= kMostListed;
    std::string text;
    std::uint64_t records = 0, bytes = 0;
    std::size_t well = 0;
    for (const auto& node : reply.nodes) {
        if (all || !node->error.empty() || node->lost != 0) {
            text += node_line(*node);
            continue;
        }
        ++well;
        records += node->records;
        bytes += node->bytes;
    }
    if (well != 0) {
        text += grouped(well) + (text.empty() ? "" : " more") +
                " nodes, all well: " + grouped(records) + " records, " + bytes_text(bytes) +
                " (--json names each)\n";
    }
    return text;
}

/// Of very many dumps, where they are.
std::string path_lines(const fbs::TraceReplyT& reply) {
    const std::vector<std::string> paths = paths_of(reply);
    if (paths.size() <= kMostListed + 1) {
        std::string text;
        for (const std::string& path : paths) {
            text += path + "\n";
        }
        return text;
    }
    return grouped(paths.size() - 1) + " dumps, the first of them " + paths.front() + "\n" +
           paths.back() + "\n";
}

std::string trace_text(const fbs::TraceReplyT& reply, const std::string& waiting) {
    std::string text = node_lines(reply);
    text += verdict_table(reply, text_width()) + waiting;
    text += calls_line(reply) + "\n" + clocks_line(reply) + path_lines(reply);
    return text;
}

std::string trace_json(const fbs::TraceReplyT& reply, const std::string& waiting) {
    nlohmann::json nodes = nlohmann::json::array();
    for (const auto& node : reply.nodes) {
        nodes.push_back(node_json(*node));
    }
    nlohmann::json verdicts = nlohmann::json::array();
    for (const auto& process : reply.verdicts) {
        verdicts.push_back(verdict_json(reply, *process));
    }
    return json_text(nlohmann::json{
        {"capture_id", reply.capture_id},
        {"nodes", nodes},
        {"processes", verdicts},
        {"joined_requests", reply.joined_requests},
        {"joined_replies", reply.joined_replies},
        {"orphans", reply.orphans},
        {"cut", reply.cut},
        {"unfinished", reply.unfinished},
        {"ambiguous", reply.ambiguous},
        {"order_violations", reply.order_violations},
        {"start_spread_ns", reply.start_spread_ns},
        {"duration_ns", reply.duration_ns},
        {"clock_bound_ns", worst_bound_ns(reply)},
        {"paths", paths_of(reply)},
        {"waiting", waiting.empty() ? nlohmann::json() : nlohmann::json::parse(waiting)},
        {"all_good", trace_status(reply) == kExitGood},
    });
}

}  // namespace ringside::tools
