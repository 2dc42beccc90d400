#include "viewer_export/out/table_footer.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <span>

#include "schema/segment.hpp"
#include "viewer_export/model/rpc_tree.hpp"
#include "viewer_export/out/cost.hpp"

namespace ringside::viewer_export {

namespace {

std::string count(std::uint64_t number, const char* one, const char* many) {
    return std::to_string(number) + " " + (number == 1 ? one : many);
}

/// Lost records by node, or that nobody knows: a dump without its footer doesn't say.
std::string lost_text(const model::Job& job) {
    struct PerNode {
        std::uint64_t lost = 0;
        std::uint64_t lanes = 0;
    };
    std::map<model::Index, PerNode> nodes;
    for (const model::Lane& lane : job.lanes) {
        if (lane.account.lost == 0) continue;
        PerNode& node = nodes[job.process_of(lane).node];
        node.lost += lane.account.lost;
        ++node.lanes;
    }
    std::string text = "lost " + std::to_string(job.totals.lost);
    std::string detail;
    for (const auto& [node, sums] : nodes) {
        if (!detail.empty()) detail += ", ";
        detail += std::to_string(sums.lost) + " on " + count(sums.lanes, "lane", "lanes") + " of " +
                  job.nodes[node].name;
    }
    if (!detail.empty()) text += " (" + detail + ")";
    for (const model::Node& node : job.nodes) {
        if (!node.dump.empty() && !node.complete)
            text += ", on " + node.name + " unknown (its dump has no footer)";
    }
    return text;
}

std::string event_line(const model::Job& job) {
    const model::Totals& totals = job.totals;
    std::size_t nodes = 0;
    for (const model::Node& node : job.nodes) nodes += !node.dump.empty();
    std::string line = "Events: " + std::to_string(totals.events) + " of " +
                       count(job.processes.size(), "process", "processes") + " on " +
                       count(nodes, "node", "nodes") + ", " + lost_text(job) + ", unfinished " +
                       std::to_string(totals.unfinished) + ", open " + std::to_string(totals.open);
    if (totals.ends_without_begin > 0) {
        line += ", begun before the capture " + std::to_string(totals.ends_without_begin);
    }
    if (totals.duplicates > 0)
        line += ", read twice and dropped " + std::to_string(totals.duplicates);
    if (totals.unknown_records > 0) {
        line += ", of kinds unknown to this version " + std::to_string(totals.unknown_records);
    }
    return line;
}

/// Which iterations are shown, of how many processes each; empty: none were asked for.
std::string iterations_line(const model::Job& job) {
    std::map<std::string, std::size_t> groups;
    for (const model::Process& process : job.processes) {
        if (!process.iterations) continue;
        const model::Iterations& had = *process.iterations;
        std::string text = had.name.empty() ? "none" : std::to_string(had.count);
        if (had.count < had.asked && !had.beside) text += " of " + std::to_string(had.asked);
        if (!had.name.empty()) text += " of " + had.name;
        ++groups[text];
    }
    std::string line;
    for (const auto& [text, processes] : groups) {
        line += (line.empty() ? "Iterations: " : ", ") + text + " in " +
                count(processes, "process", "processes");
    }
    if (line.empty()) return line;
    return line + "; outside of them " + count(job.totals.outside_iterations, "event", "events") +
           ", not shown";
}

/// Of all processes.
std::uint64_t sum_of(const model::Job& job, schema::Loss loss) {
    std::uint64_t sum = 0;
    for (const model::Process& process : job.processes) {
        const auto index = static_cast<std::size_t>(loss);
        if (index < process.losses.size()) sum += process.losses[index];
    }
    return sum;
}

using LossName = std::pair<schema::Loss, const char*>;

/// Those of all processes that are not 0, each with its name.
std::string sums(const model::Job& job, std::span<const LossName> names, const char* between) {
    std::string text;
    for (const auto& [loss, name] : names) {
        const std::uint64_t sum = sum_of(job, loss);
        if (sum == 0) continue;
        text += (text.empty() ? "" : ", ") + std::to_string(sum) + between + name;
    }
    return text;
}

/// What hooks passed over, by reason: no record, no place, still missing.
std::string passed_over_line(const model::Job& job) {
    using schema::Loss;
    static constexpr std::array<LossName, 6> kReasons = {{
        {Loss::kStackTooDeep, "nested too deep"},
        {Loss::kTableFull, "too many calls in flight"},
        {Loss::kLaneRefused, "calls of threads without a lane"},
        {Loss::kReentered, "inside a hook"},
        {Loss::kGpuDropped, "dropped by CUPTI"},
        {Loss::kUnmatchedEnd, "ends without a begin"},
    }};
    const std::string text = sums(job, kReasons, " ");
    return text.empty() ? text : "Passed over: " + text;
}

/// Why lanes did not grow, or threads got none, and what to do.
std::string memory_line(const model::Job& job) {
    using schema::Loss;
    static constexpr std::array<LossName, 5> kBounds = {{
        {Loss::kRefusedByProcess, "the processes' budget (--process-budget of the agent)"},
        {Loss::kRefusedByNode, "the node's budget (--node-budget)"},
        {Loss::kRefusedByCgroup, "the limit of a memory cgroup"},
        {Loss::kRefusedByFileSystem, "what is free on the segments' file system"},
        {Loss::kRefusedByKernel, "the kernel, or a filter in front of it"},
    }};
    const std::string text = sums(job, kBounds, " times by ");
    return text.empty() ? text : "More memory was refused: " + text;
}

/// The records are there, and what they lack is shown as "?".
std::string attributes_line(const model::Job& job) {
    const std::uint64_t lost = attributes_lost(job);
    if (lost == 0) return "";
    return "Unknown: " +
           count(lost, "input shape, label or peer", "input shapes, labels and peers") +
           " of records, shown as ?: the process's table of names was full";
}

std::set<std::string> source_lines(const model::Job& job) {
    std::set<std::string> lines;
    for (const model::Process& process : job.processes) {
        for (const model::SourceState& source : process.sources) {
            const bool degraded = source.level == model::SourceLevel::kDegraded;
            if (!degraded && source.level != model::SourceLevel::kNotInstrumented) continue;
            lines.insert(std::string("Source ") + source_name(source.id) +
                         (degraded ? ": degraded" : ": not instrumented") +
                         (source.reason.empty() ? "" : ": " + source.reason));
        }
    }
    return lines;
}

}  // namespace

std::uint64_t attributes_lost(const model::Job& job) {
    return sum_of(job, schema::Loss::kAttributesLost);
}

std::string format_time(double ns) {
    char text[64];
    const double us = ns / 1000.0;
    if (us >= 1e6) {
        std::snprintf(text, sizeof text, "%.3fs", us / 1e6);
    } else if (us >= 1e3) {
        std::snprintf(text, sizeof text, "%.3fms", us / 1e3);
    } else {
        std::snprintf(text, sizeof text, "%.3fus", us);
    }
    return text;
}

const char* source_name(schema::SourceId source) {
    static constexpr std::array<const char*, 9> kNames = {"?",     "torch", "nvtx", "grpc", "mpi",
                                                          "cupti", "api",   "itt",  "nccl"};
    const auto id = static_cast<std::size_t>(source);
    return kNames[id < kNames.size() ? id : 0];
}

std::string rpc_line(const model::Job& job, bool internal_shown) {
    const model::Totals& totals = job.totals;
    std::uint64_t hidden = 0;
    for (const model::Call& call : job.calls) {
        hidden += model::is_real(job, call) && model::is_internal(job, call);
    }
    std::string line = "RPCs: ";
    if (job.has_index) {
        line += std::to_string(totals.joined_requests) + " joined, " + std::to_string(totals.cut) +
                " cut, " + count(totals.orphans, "orphan", "orphans") + ", " +
                std::to_string(totals.calls_unfinished) + " unfinished";
        if (totals.unjoined > 0) {
            line += ", " + count(totals.unjoined, "half", "halves") + " not in the job index";
        }
    } else {
        line += count(totals.unjoined, "half", "halves") + ", not joined (no job index)";
    }
    if (hidden > 0 && !internal_shown) {
        line += "; " + std::to_string(hidden) + " of torch's own not shown (--internal shows them)";
    }
    if (job.ambiguous > 0) {
        line += "; " + std::to_string(job.ambiguous) + " ambiguous, left cut";
    }
    return line;
}

std::string clock_line(const model::Job& job) {
    const std::size_t nodes = job.nodes.size();
    if (nodes < 2) return "Clocks: one node, nothing to correct";
    const std::string order = job.order_violations == 0
                                  ? ""
                                  : "; " + std::to_string(job.order_violations) +
                                        " replies before their requests beyond it";
    const bool known = std::all_of(job.nodes.begin(), job.nodes.end(), [](const model::Node& node) {
        return node.has_clock || node.dump.empty();
    });
    if (!job.has_index || !known)
        return "Clocks: of " + std::to_string(nodes) + " nodes, not compared";
    const std::string bound = "+-" + format_time(static_cast<double>(job.clock_bound_ns()));
    if (!job.corrected) return "Clocks: each node's own, not corrected";
    return "Clocks: of " + std::to_string(nodes) + " nodes, right within " + bound + order;
}

std::vector<std::string> table_footer(const model::Job& job, const std::vector<TableRow>& rows,
                                      const TableOptions& options) {
    std::vector<std::string> lines;
    if (options.row_limit != 0 && rows.size() > options.row_limit) {
        lines.push_back("Rows: " + std::to_string(options.row_limit) + " of " +
                        std::to_string(rows.size()) + " shown (--row-limit)");
    }
    lines.push_back(rpc_line(job, options.internal));
    lines.push_back(event_line(job));
    if (std::string shown = iterations_line(job); !shown.empty()) lines.push_back(std::move(shown));
    if (std::string passed = passed_over_line(job); !passed.empty())
        lines.push_back(std::move(passed));
    if (std::string memory = memory_line(job); !memory.empty()) lines.push_back(std::move(memory));
    if (std::string unknown = attributes_line(job); !unknown.empty())
        lines.push_back(std::move(unknown));
    lines.push_back(clock_line(job));
    if (std::string cost = cost_line(job); !cost.empty()) lines.push_back(std::move(cost));
    for (const std::string& line : source_lines(job)) lines.push_back(line);
    if (!job.damage.empty()) {
        lines.push_back("Damaged: " + count(job.damage.size(), "note", "notes") +
                        " on the inputs; only what was readable is above");
    }
    return lines;
}

}  // namespace ringside::viewer_export
