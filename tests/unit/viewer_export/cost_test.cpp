// The receipt: summed over nodes in the table, by node with each process's start in both JSON outputs, absent where dumps have none.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "sample_job.hpp"
#include "viewer_export/load/job_loader.hpp"
#include "viewer_export/out/cost.hpp"
#include "viewer_export/out/table.hpp"
#include "viewer_export/out/trace.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export;
namespace fbs = ringside::fbs;
using nlohmann::json;

namespace {

/// Two nodes: 100 records in half a second of alpha's process, 300 in a whole one of beta's.
void write_receipts(const std::filesystem::path& directory) {
    for (const bool first : {true, false}) {
        const std::string node = first ? "alpha" : "beta";
        DumpMaker dump(node);
        dump.process(0, first ? 4000 : 4001);
        dump.lane(0, 0, 100).range("aten::add", 0, 1000);
        dump.end(0, fbs::Fate::Running, 2000, first ? 1'000'000 : 2'500'000);
        fbs::PerturbationT cost;
        cost.records = first ? 100 : 300;
        cost.cost_ns = cost.records * 20;
        cost.job_time_ns = first ? 500'000'000 : 1'000'000'000;
        cost.slowest_start_ns = first ? 1'000'000 : 2'500'000;
        cost.agent_cpu_ns = first ? 10'000'000 : 30'000'000;
        dump.perturbation(cost);
        dump.footer(2000);
        dump.write(directory / (node + ".rsd"));
    }
}

void check_nodes(const json& nodes) {
    REQUIRE(nodes.size() == 2);
    const json& alpha = nodes[0]["perturbation"];
    CHECK(alpha["records"] == 100);
    CHECK(alpha["record_cost_ns"] == 20.0);
    CHECK(alpha["cost_ns"] == 2000);
    CHECK(alpha["job_time_ns"] == 500'000'000);
    CHECK(alpha["share_percent"] == doctest::Approx(0.0004));
    CHECK(alpha["slowest_start_ns"] == 1'000'000);
    CHECK(alpha["agent_cpu_ns"] == 10'000'000);
    REQUIRE(alpha["starts"].size() == 1);
    CHECK(alpha["starts"][0] == json{{"pid", 4000}, {"start_delay_ns", 1'000'000}});
    CHECK(nodes[1]["perturbation"]["starts"][0]["pid"] == 4001);
}

}  // namespace

TEST_CASE("cost: the table sums the nodes' receipts") {
    TemporaryDirectory directory;
    write_receipts(directory.path());
    CHECK(cost_line(loaded(directory.path())) ==
          "Cost: 400 records x 20.0ns = 8.000us, 0.0005% of 2 processes' 1.500s (an estimate); "
          "slowest start 2.500ms; agents' CPU time 40.000ms");
}

TEST_CASE("cost: both JSON outputs have each node's receipt") {
    TemporaryDirectory directory;
    write_receipts(directory.path());
    const model::Job job = loaded(directory.path());
    const auto table = table_json(job, {});
    REQUIRE(table);
    check_nodes(json::parse(*table)["nodes"]);
    REQUIRE(write_chrome(job, directory / "trace.json"));
    check_nodes(json::parse(read_text(directory / "trace.json"))["ringside"]["nodes"]);
}

TEST_CASE("cost: a dump of before there were receipts claims none") {
    TemporaryDirectory directory;
    write_sample(directory.path());
    const model::Job job = loaded(directory.path());
    CHECK(cost_line(job).empty());
    const auto table = table_json(job, {});
    REQUIRE(table);
    const json told = json::parse(*table);
    for (const json& node : told["nodes"]) CHECK_FALSE(node.contains("perturbation"));
}
