#include <doctest/doctest.h>

#include <map>
#include <string>

#include "tools/ringside/launch_step.hpp"

using ringside::tools::launch_step;
using ringside::tools::LaunchStep;

namespace {

LaunchStep step_of(const std::map<std::string, std::string>& variables,
                   const std::string& host = "host7") {
    return launch_step(
        [&](const char* name) {
            const auto found = variables.find(name);
            return found == variables.end() ? std::string() : found->second;
        },
        host);
}

}  // namespace

TEST_CASE("launch step: a Slurm task is of its job, its step and its node") {
    const LaunchStep step =
        step_of({{"SLURM_JOB_ID", "4242"}, {"SLURM_STEP_ID", "3"}, {"SLURMD_NODENAME", "host7"}});
    CHECK(step.job == "4242");
    CHECK(step.step == "3");
    CHECK(step.node == "host7");
    CHECK(step_of({{"SLURM_JOB_ID", "4242"}}).step == "batch");
}

TEST_CASE(
    "launch step: nodes that share a host have directories of their own, one with another form of "
    "its name has not") {
    const auto job = [](const std::string& node, const std::string& host) {
        return step_of({{"SLURM_JOB_ID", "4242"}, {"SLURMD_NODENAME", node}}, host).job;
    };
    CHECK(job("n1", "host7") == "4242.n1");
    CHECK(job("host7", "host7.cluster.org") == "4242");
    CHECK(job("host7.cluster.org", "host7") == "4242");
    CHECK(job("", "host7") == "4242");
}

TEST_CASE("launch step: what the user says counts first") {
    const LaunchStep step = step_of({{"RINGSIDE_JOB", "mine"},
                                     {"RINGSIDE_NODE", "here"},
                                     {"SLURM_JOB_ID", "4242"},
                                     {"SLURMD_NODENAME", "n1"}});
    CHECK(step.job == "mine");
    CHECK(step.node == "here");
}

TEST_CASE("launch step: within another one a task is of its job all the same") {
    const auto within = [](const std::string& job) {
        return step_of({{"RINGSIDE_JOB", job},
                        {"SLURM_JOB_ID", "4250"},
                        {"SLURM_ARRAY_JOB_ID", "4242"},
                        {"SLURM_ARRAY_TASK_ID", "7"},
                        {"SLURMD_NODENAME", "n2"}});
    };
    for (const char* job : {"4250", "4250.n1"}) {
        CHECK(within(job).member == "4242_7");
        CHECK(within(job).job == "4250.n2");
    }
    CHECK(within("42501").member == "42501");
}

TEST_CASE("launch step: other launchers' runs are told apart, and their ids are names of files") {
    CHECK(step_of({}).job == "default");
    CHECK(step_of({{"TORCHELASTIC_RUN_ID", "none"}}).job == "default");
    const LaunchStep step = step_of({{"PMIX_NAMESPACE", "prterun-host/7@1"}});
    CHECK(step.job == "run-prterun-host-7-1");
    CHECK(step.step == "prterun-host-7-1");
    CHECK(step_of({{"PMIX_NAMESPACE", std::string(300, 'x')}}).job.size() < 64);
}

TEST_CASE("launch step: other hosts look for the job under the name that its user knows") {
    CHECK(step_of({{"SLURM_JOB_ID", "4242"}, {"SLURMD_NODENAME", "n1"}}).member == "4242");
    const LaunchStep task = step_of({{"SLURM_JOB_ID", "4249"},
                                     {"SLURM_ARRAY_JOB_ID", "4242"},
                                     {"SLURM_ARRAY_TASK_ID", "7"},
                                     {"SLURMD_NODENAME", "host7"}});
    CHECK(task.node == "host7_7");
    CHECK(task.member == "4242_7");
    CHECK(task.job == "4249");
    CHECK(step_of({{"RINGSIDE_JOB", "mine"}, {"SLURM_JOB_ID", "4242"}}).member == "mine");
    CHECK(step_of({{"PMIX_NAMESPACE", "p/7"}}).member == "run-p-7");
}

TEST_CASE("launch step: a task's rank as its shim finds it, and the ranks beside it") {
    CHECK(step_of({}).rank == -1);
    CHECK(step_of({{"SLURM_PROCID", "5"}}).rank == 5);
    CHECK(step_of({{"SLURM_PROCID", "5"}, {"RANK", "7"}}).rank == 7);
    CHECK(step_of({{"RANK", "none"}, {"PMI_RANK", "2"}}).rank == 2);
    const LaunchStep step =
        step_of({{"SLURM_JOB_ID", "1"}, {"SLURM_PROCID", "5"}, {"SLURM_GTIDS", "4,5,6"}});
    CHECK(step.ranks_here == std::vector<std::int32_t>{4, 5, 6});
    CHECK(step_of({{"SLURM_PROCID", "5"}, {"SLURM_GTIDS", ""}}).ranks_here.empty());
}

TEST_CASE("launch step: beside a rank of mpirun's in a Slurm step are none of the step's tasks") {
    const LaunchStep step = step_of({{"SLURM_JOB_ID", "1"},
                                     {"SLURM_PROCID", "0"},
                                     {"SLURM_GTIDS", "0"},
                                     {"OMPI_COMM_WORLD_RANK", "3"}});
    CHECK(step.rank == 3);
    CHECK(step.ranks_here.empty());
}
