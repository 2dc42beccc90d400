#include "viewer_export/out/cost.hpp"

#include <algorithm>
#include <cstdio>

#include "viewer_export/model/bounded_sum.hpp"
#include "viewer_export/out/table_footer.hpp"

namespace ringside::viewer_export {

namespace {

constexpr double kPercent = 100;

struct Sum {
    model::Perturbation cost;
    std::size_t processes = 0;
};

Sum sum_of(const model::Job& job) {
    Sum sum;
    sum.cost.agent_cpu_ns = 0;
    for (const model::Node& node : job.nodes) {
        const model::Perturbation& one = node.perturbation;
        if (!one.known) continue;
        sum.cost.known = true;
        sum.cost.records += one.records;
        sum.cost.cost_ns += one.cost_ns;
        sum.cost.job_time_ns += one.job_time_ns;
        sum.cost.slowest_start_ns = std::max(sum.cost.slowest_start_ns, one.slowest_start_ns);
        model::add_to(sum.cost.agent_cpu_ns, std::max<std::int64_t>(one.agent_cpu_ns, 0));
    }
    for (const model::Process& process : job.processes)
        sum.processes += job.nodes[process.node].perturbation.known;
    return sum;
}

double share_percent(const model::Perturbation& cost) {
    return cost.job_time_ns == 0 ? 0
                                 : kPercent * static_cast<double>(cost.cost_ns) /
                                       static_cast<double>(cost.job_time_ns);
}

}  // namespace

std::string cost_line(const model::Job& job) {
    const Sum sum = sum_of(job);
    const model::Perturbation& cost = sum.cost;
    if (!cost.known) return {};
    const double each = cost.records == 0
                            ? 0
                            : static_cast<double>(cost.cost_ns) / static_cast<double>(cost.records);
    char text[192];
    std::snprintf(text, sizeof text,
                  "Cost: %llu records x %.1fns = %s, %.4f%% of %zu %s %s (an estimate)",
                  static_cast<unsigned long long>(cost.records), each,
                  format_time(static_cast<double>(cost.cost_ns)).c_str(), share_percent(cost),
                  sum.processes, sum.processes == 1 ? "process'" : "processes'",
                  format_time(static_cast<double>(cost.job_time_ns)).c_str());
    std::string line = text;
    if (cost.slowest_start_ns >= 0)
        line += "; slowest start " + format_time(static_cast<double>(cost.slowest_start_ns));
    return line + "; agents' CPU time " + format_time(static_cast<double>(cost.agent_cpu_ns));
}

void write_cost(JsonWriter& json, const model::Job& job, model::Index node) {
    const model::Node& of = job.nodes[node];
    if (!of.perturbation.known) return;
    json.key("perturbation");
    json.begin_object();
    json.field("record_cost_ns", of.record_cost_ns);
    json.field("records", of.perturbation.records);
    json.field("cost_ns", of.perturbation.cost_ns);
    json.field("job_time_ns", of.perturbation.job_time_ns);
    json.field("share_percent", share_percent(of.perturbation));
    json.field("slowest_start_ns", of.perturbation.slowest_start_ns);
    json.field("agent_cpu_ns", of.perturbation.agent_cpu_ns);
    json.key("starts");
    json.begin_array();
    for (const model::Process& process : job.processes) {
        if (process.node != node || process.start_delay_ns < 0) continue;
        json.begin_object();
        json.field("pid", process.pid);
        json.field("start_delay_ns", process.start_delay_ns);
        json.end_object();
    }
    json.end_array();
    json.end_object();
}

}  // namespace ringside::viewer_export
