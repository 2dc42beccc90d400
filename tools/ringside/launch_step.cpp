#include "tools/ringside/launch_step.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "schema/ids.hpp"

#include "agent/control/member.hpp"

namespace ringside::tools {

namespace {

/// Of other launchers' ids: what may stand in a file's name, and no more than fits beside others.
std::string as_name(std::string text) {
    constexpr std::size_t kMost = 48;
    std::replace_if(
        text.begin(), text.end(),
        [](char c) {
            return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '_');
        },
        '-');
    return text.substr(0, kMost);
}

std::string first_set(const std::function<std::string(const char*)>& variable,
                      std::initializer_list<const char*> names) {
    for (const char* name : names) {
        if (std::string value = variable(name); !value.empty()) {
            return value;
        }
    }
    return "";
}

/// "0,3" -> 0, 3.
std::vector<std::int32_t> numbers_of(const std::string& text) {
    std::vector<std::int32_t> numbers;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
        std::int32_t number = 0;
        const char* const end = part.data() + part.size();
        const auto [rest, error] = std::from_chars(part.data(), end, number);
        if (error == std::errc() && rest == end && number >= 0) {
            numbers.push_back(number);
        }
    }
    return numbers;
}

}  // namespace

LaunchStep launch_step(const std::function<std::string(const char*)>& variable,
                       const std::string& host) {
    LaunchStep step;
    step.node = variable("RINGSIDE_NODE");
    const std::string slurm_job = variable("SLURM_JOB_ID");
    step.job = variable("RINGSIDE_JOB");
    // The directory's name, from a wrap around this one: on this node, and for other nodes it says nothing.
    if (!slurm_job.empty() && (step.job + ".").rfind(slurm_job + ".", 0) == 0) {
        step.job.clear();
    }
    step.member = step.job;
    for (const char* name : schema::kRankVariables) {
        const auto ranks = numbers_of(variable(name));
        if (ranks.size() == 1) {
            step.rank = ranks[0];
            break;
        }
    }
    // What another launcher starts in a step has Slurm's variables of its parent: mpirun's daemon is the task, its ranks are none.
    if (numbers_of(variable("SLURM_PROCID")) == std::vector{step.rank}) {
        step.ranks_here = numbers_of(variable("SLURM_GTIDS"));
    }
    if (!slurm_job.empty()) {
        const std::string slurm_node = variable("SLURMD_NODENAME");
        if (step.node.empty()) {
            // Tasks of an array may share a node, and one command captures them all.
            const std::string task = variable("SLURM_ARRAY_TASK_ID");
            step.node = slurm_node + (task.empty() || slurm_node.empty() ? "" : "_" + task);
        }
        if (step.job.empty()) {
            // One slurmd a host, and its node bears the host's name, with a domain or without: all that is usual.
            const bool alone = slurm_node.empty() || slurm_node.substr(0, slurm_node.find('.')) ==
                                                         host.substr(0, host.find('.'));
            step.job = alone ? slurm_job : slurm_job + "." + as_name(slurm_node);
        }
        if (step.member.empty()) {
            step.member = agent::slurm_member(variable);
        }
        const std::string id = variable("SLURM_STEP_ID");
        step.step = id.empty() ? "batch" : as_name(id);
        return step;
    }
    const std::string run = first_set(variable, {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid",
                                                 "PMI_JOBID", "TORCHELASTIC_RUN_ID"});
    step.step = run.empty() ? "0" : as_name(run);
    if (step.job.empty()) {
        step.job = run.empty() || run == "none" ? "default" : "run-" + as_name(run);
    }
    step.member = step.job;
    return step;
}

}  // namespace ringside::tools
