// Torch's table to the character, and our groups and footer.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sample_job.hpp"
#include "schema/segment.hpp"
#include "viewer_export/out/table.hpp"
#include "viewer_export/out/table_footer.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export;
namespace fbs = ringside::fbs;
using ringside::schema::ErrorCode;
using ringside::schema::RpcMode;
using ringside::schema::RpcStatus;

namespace {

std::string table(const model::Job& job, const TableOptions& options = {}) {
    const auto text = render_table(job, options);
    REQUIRE(text);
    return *text;
}

/// The row of that name, null where there is none.
const TableRow* find(const std::vector<TableRow>& rows, const std::string& name) {
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const TableRow& r) { return r.name == name; });
    return row == rows.end() ? nullptr : &*row;
}

std::vector<TableRow> rows_of(const model::Job& job, const TableOptions& options = {}) {
    const auto rows = table_rows(job, options);
    REQUIRE(rows);
    return *rows;
}

// Checked against torch 1.13's own _build_table on the same rows.
constexpr const char* kGolden =
    R"(-------------------------------------------------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  
                                                   Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls       Node ID  
-------------------------------------------------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  
                                             aten::rand        15.44%      30.000us        51.46%     100.000us     100.000us             1             0  
                                            aten::empty         5.15%      10.000us         5.15%      10.000us      10.000us             1             0  
                                         aten::uniform_        30.88%      60.000us        30.88%      60.000us      60.000us             1             0  
                    rpc_sync#nested(worker0 -> worker1)         0.00%       0.000us             0       2.000ms       2.000ms             1             0  
rpc_sync#nested(worker0 -> worker1)#remote_op: aten:...        22.30%      43.325us        22.30%      43.325us      43.325us             1             1  
rpc_sync#nested(worker0 -> worker1)#remote_op: rpc_s...         0.00%       0.000us             0       1.000ms       1.000ms             1             1  
rpc_sync#nested(worker0 -> worker1)#remote_op: rpc_s...        20.58%      40.000us        25.73%      50.000us      50.000us             1             2  
rpc_sync#nested(worker0 -> worker1)#remote_op: rpc_s...         5.15%      10.000us         5.15%      10.000us      10.000us             1             2  
                                              aten::mul         0.51%       1.000us         0.51%       1.000us       1.000us             1             1  
-------------------------------------------------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  
Self CPU time total: 194.325us
RPCs: 2 joined, 0 cut, 0 orphans, 0 unfinished
Events: 11 of 3 processes on 3 nodes, lost 0, unfinished 0, open 0
Clocks: of 3 nodes, right within +-2.500us
)";

}  // namespace

TEST_CASE("table: the sample job as torch would print it") {
    TemporaryDirectory directory;
    write_sample(directory.path());
    CHECK(table(loaded(directory.path())) == kGolden);
}

TEST_CASE("table: full names widen the column to the longest") {
    TemporaryDirectory directory;
    write_sample(directory.path());
    const std::string text = table(loaded(directory.path()), {.full_names = true});
    const std::string longest =
        "rpc_sync#nested(worker0 -> worker1)#remote_op: rpc_sync#udf(worker1 -> "
        "worker2)#remote_op: aten::empty";
    CHECK(text.find("    " + longest + "         5.15%      10.000us") != std::string::npos);
    CHECK(text.substr(0, text.find(' ')) == std::string(longest.size() + 4, '-'));
}

TEST_CASE("table: times change unit at 1e3 and 1e6 microseconds") {
    CHECK(format_time(0) == "0.000us");
    CHECK(format_time(999'999) == "999.999us");
    CHECK(format_time(1'000'000) == "1.000ms");
    CHECK(format_time(999'999'000) == "999.999ms");
    CHECK(format_time(1'000'000'000) == "1.000s");
    CHECK(format_time(61'234'500'000) == "61.234s");
}

TEST_CASE("table: no worker ids, no Node ID column") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000);
    dump.lane(0, 0, 100).range("aten::add", 0, 1000);
    dump.footer(2000);
    dump.write(directory / "alpha.rsd");
    const std::string text = table(loaded(directory.path()));
    CHECK(text.find("Node ID") == std::string::npos);
    CHECK(text.find("Clocks: one node") != std::string::npos);
    CHECK(text.find("0 halves, not joined") != std::string::npos);
}

TEST_CASE("table: sorting descends, names ascend, an unknown key is refused with the known ones") {
    TemporaryDirectory directory;
    write_sample(directory.path());
    const model::Job job = loaded(directory.path());
    CHECK(rows_of(job, {.sort_by = "cpu_time_total"})[0].name ==
          "rpc_sync#nested(worker0 -> worker1)");
    CHECK(rows_of(job, {.sort_by = "self_cpu_time_total"})[0].name == "aten::uniform_");
    CHECK(rows_of(job, {.sort_by = "name"})[0].name == "aten::empty");
    CHECK(rows_of(job, {.sort_by = "node_id"}).back().node_id == 2);
    for (const std::string_view key : table_sort_keys())
        CHECK(table_rows(job, {.sort_by = std::string(key)}));
    const auto refused = render_table(job, {.sort_by = "colour"});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kUsage);
    CHECK(refused.error().message.find("self_cpu_time_total") != std::string::npos);
}

TEST_CASE("table: the row limit cuts rows, not sums, and says so") {
    TemporaryDirectory directory;
    write_sample(directory.path());
    const std::string text = table(loaded(directory.path()), {.row_limit = 2});
    CHECK(text.find("aten::uniform_") == std::string::npos);
    CHECK(text.find("Self CPU time total: 194.325us") != std::string::npos);
    CHECK(text.find("Rows: 2 of 9 shown") != std::string::npos);
}

TEST_CASE("table: calls that are not whole are groups of their own, outside of Self CPU") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000, 0, "worker0", 0);
    LaneMaker& lane = dump.lane(0, 0, 100);
    const HalfSpec call{false, 1, 70, 0, "f", "", "worker0", "worker1", RpcMode::kSync};
    std::vector<std::uint64_t> positions;
    for (std::uint64_t key = 1; key <= 5; ++key) {
        HalfSpec half = call;
        half.key = key;
        half.span = 70 + key;
        positions.push_back(lane.rpc_begin(100 * key, half));
        if (key != 4)
            lane.rpc_end(100 * key + 10, key, key == 1 ? RpcStatus::kPeerGone : RpcStatus::kOk);
    }
    lane.range("aten::add", 700, 710);
    lane.open("loop", 750, true);
    DumpMaker dead("beta");
    dead.process(0, 4001, 1, "worker1", 1);
    LaneMaker& victim = dead.lane(0, 0, 101);
    const auto server = victim.rpc_begin(310, {true, 9, 73, 0, "f", "", "worker1", "worker0"});
    victim.open("stuck", 330);
    dead.end(0, fbs::Fate::Killed, 400);
    dead.footer(1000);
    dead.write(directory / "beta.rsd");
    dump.end(0, fbs::Fate::Running, 1000);
    dump.footer(1000);
    dump.write(directory / "alpha.rsd");
    IndexMaker maker({"alpha", "beta"});
    maker.single({0, 0, 0, 0, positions[0]}, false, fbs::RpcState::Orphan);
    maker.single({0, 0, 0, 0, positions[1]}, false, fbs::RpcState::Cut);
    maker.joined({0, 0, 0, 0, positions[2]}, {1, 0, 0, 0, server}, -1, true, false);
    maker.single({0, 0, 0, 0, positions[3]}, false, fbs::RpcState::Cut);
    maker.write(directory / "job.rsj");

    const model::Job job = loaded(directory.path());
    const auto rows = rows_of(job);
    const std::string name = "rpc_sync#f(worker0 -> worker1)";
    for (const char* suffix : {" [orphan]", " [cut]", " [unfinished]", ""}) {
        const TableRow* row = find(rows, name + suffix);
        REQUIRE_MESSAGE(row != nullptr, name << suffix);
        CHECK(row->is_async);
        CHECK(row->self_cpu_ns == 0);
    }
    CHECK(find(rows, name + " [cut]")->count == 2);
    CHECK(find(rows, name + " [cut]")->cpu_ns ==
          10 + 600);  // the open one lasts to the capture's stop
    CHECK(find(rows, "loop [open]")->cpu_ns == 250);
    CHECK(find(rows, "stuck [unfinished]")->cpu_ns == 70);
    CHECK(find(rows, "stuck [unfinished]")->self_cpu_ns == 0);
    const std::string text = table(job);
    CHECK(text.find("Self CPU time total: 0.010us") != std::string::npos);
    CHECK(text.find("RPCs: 1 joined, 2 cut, 1 orphan, 1 unfinished, 1 half not in the job index") !=
          std::string::npos);
    CHECK(text.find("unfinished 2, open 2") != std::string::npos);
}

TEST_CASE("table: without an index both halves are rows, each where it ran") {
    TemporaryDirectory directory;
    write_sample(directory.path(), false);
    const model::Job job = loaded(directory.path());
    const auto rows = rows_of(job);
    CHECK(find(rows, "rpc_sync#nested(worker0 -> worker1)")->node_id == 0);
    CHECK(find(rows, "rpc#nested(worker0 -> worker1)")->node_id == 1);
    CHECK(find(rows, "rpc#nested(worker0 -> worker1)#remote_op: aten::add") != nullptr);
    const std::string text = table(job);
    CHECK(text.find("RPCs: 4 halves, not joined (no job index)") != std::string::npos);
    CHECK(text.find("Clocks: of 3 nodes, not compared") != std::string::npos);
}

TEST_CASE("table: torch's own messages are hidden unless asked for, its fetches told once") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000, 0, "worker0", 0);
    LaneMaker& lane = dump.lane(0, 0, 100);
    lane.rpc_begin(100, {false, 1, 71, 0, "_gather_to_leader", "torch.distributed.rpc.api",
                         "worker0", "worker1", RpcMode::kSync});
    lane.rpc_end(110, 1);
    lane.rpc_begin(
        200, {false, 2, 72, 0, "rref_user_delete", "", "worker0", "worker1", RpcMode::kInternal});
    lane.rpc_end(210, 2);
    lane.rpc_begin(310, {false, 3, 73, 0, "to_here", "", "worker0", "worker1", RpcMode::kFetch});
    lane.rpc_end(390, 3);
    lane.range("to_here#(worker0)->(worker1)", 300, 400, 7);
    dump.footer(1000);
    dump.write(directory / "alpha.rsd");
    const model::Job job = loaded(directory.path());
    const auto rows = rows_of(job);
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].name == "to_here#(worker0)->(worker1)");
    CHECK(rows[0].count == 1);
    CHECK(rows[0].self_cpu_ns == 100);
    CHECK(table(job).find("2 of torch's own not shown") != std::string::npos);
    const auto all = rows_of(job, {.internal = true});
    CHECK(find(all, "rref_user_delete(worker0 -> worker1)") != nullptr);
    CHECK(find(all, "rpc_sync#_gather_to_leader(worker0 -> worker1)") != nullptr);
    CHECK(find(all, "to_here#(worker0)->(worker1)")->count == 2);
}

TEST_CASE("table: each way of calling has its name") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000, 0, "worker0", 0);
    LaneMaker& lane = dump.lane(0, 0, 100);
    std::uint64_t key = 0;
    for (const RpcMode mode : {RpcMode::kUnknown, RpcMode::kSync, RpcMode::kAsync,
                               RpcMode::kAsyncJit, RpcMode::kRemote, RpcMode::kFetch}) {
        ++key;
        lane.rpc_begin(100 * key, {false, key, key, 0, "f", "", "worker0", "worker1", mode});
        lane.rpc_end(100 * key + 10, key);
    }
    dump.footer(1000);
    dump.write(directory / "alpha.rsd");
    std::vector<std::string> names;
    for (const TableRow& row : rows_of(loaded(directory.path()))) names.push_back(row.name);
    CHECK(names == std::vector<std::string>{
                       "rpc#f(worker0 -> worker1)", "rpc_sync#f(worker0 -> worker1)",
                       "rpc_async#f(worker0 -> worker1)", "rpc_async_jit#f(worker0 -> worker1)",
                       "rpc_remote#f(worker0 -> worker1)", "to_here#(worker0)->(worker1)"});
}

TEST_CASE(
    "table: what torch leaves out is left out, its time stays with its caller; steps are one row") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000, 0, "worker0", 0);
    LaneMaker& lane = dump.lane(0, 0, 100);
    lane.range("aten::is_leaf", 10, 30);
    lane.range("ProfilerStep#1", 0, 100, 7);
    lane.range("ProfilerStep#2", 100, 200, 7);
    dump.footer(1000);
    dump.write(directory / "alpha.rsd");
    const auto rows = rows_of(loaded(directory.path()));
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].name == "ProfilerStep*");
    CHECK(rows[0].count == 2);
    CHECK(rows[0].self_cpu_ns == 200);
}

TEST_CASE(
    "table: names are measured in characters, and control characters never reach the terminal") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000);
    LaneMaker& lane = dump.lane(0, 0, 100);
    std::string wide;
    for (int i = 0; i < 60; ++i) wide += "\xc3\xbc";
    lane.range(wide, 0, 10);
    lane.range("red\x1b[31m", 20, 30);
    lane.range(std::string(51, 'a'), 40, 50);
    lane.range(std::string(52, 'b'), 60, 70);
    dump.footer(1000);
    dump.write(directory / "alpha.rsd");
    const std::string text = table(loaded(directory.path()));
    CHECK(text.find("\n" + wide.substr(0, 104) + "...  ") != std::string::npos);
    CHECK(text.find("red?[31m") != std::string::npos);
    CHECK(text.find("    " + std::string(51, 'a') + "  ") != std::string::npos);
    CHECK(text.find("\n" + std::string(52, 'b') + "...  ") != std::string::npos);
}

TEST_CASE("table: a job without events has no table, but says so") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.footer(1000);
    dump.write(directory / "alpha.rsd");
    CHECK(table(loaded(directory.path())).starts_with("RPCs: 0 halves"));
}

TEST_CASE("table: a source that could not be attached is told with the reason") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000, 0, "worker0", 0, fbs::SourceLevel::NotInstrumented);
    dump.lane(0, 0, 100).range("f", 100, 200);
    dump.end(0, fbs::Fate::Running, 1000);
    dump.footer(1000);
    dump.write(directory / "alpha.rsd");
    const std::string text = table(loaded(directory.path()));
    CHECK(text.find("Source torch: not instrumented: held by another") != std::string::npos);
}

TEST_CASE("table: degraded sources and losses are told") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000, 0, "worker0", 0, fbs::SourceLevel::Degraded);
    LaneMaker& lane = dump.lane(0, 0, 100);
    lane.range("a", 0, 10);
    lane.lose(3, 20, 30);
    dump.footer(1000);
    dump.write(directory / "alpha.rsd");
    const std::string text = table(loaded(directory.path()));
    CHECK(text.find("lost 3 (3 on 1 lane of alpha)") != std::string::npos);
    CHECK(text.find("Source torch: degraded: no Python part") != std::string::npos);
}

TEST_CASE("table: shapes, labels and peers that are unknown are told, and are none of the lost") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000, 0, "worker0", 0, fbs::SourceLevel::Full);
    dump.process(1, 4001, 0, "worker1", 1, fbs::SourceLevel::Full);
    dump.lane(0, 0, 100).range("a", 0, 10);
    std::vector<std::uint64_t> losses(16);
    losses[static_cast<std::size_t>(ringside::schema::Loss::kAttributesLost)] = 40;
    losses[static_cast<std::size_t>(ringside::schema::Loss::kRefusedByKernel)] = 3;
    dump.end(0, 1000, losses);
    losses[static_cast<std::size_t>(ringside::schema::Loss::kAttributesLost)] = 2;
    dump.end(1, 1000, losses);
    dump.footer(1000);
    dump.write(directory / "alpha.rsd");
    const auto job = loaded(directory.path());
    const std::string text = table(job);
    CHECK(text.find("Unknown: 42 input shapes, labels and peers of records, shown as ?") !=
          std::string::npos);
    CHECK(text.find("6 times by the kernel, or a filter in front of it") != std::string::npos);
    CHECK(text.find("lost 0") != std::string::npos);
    CHECK(text.find("Passed over") == std::string::npos);
    const auto json = table_json(job, {});
    REQUIRE(json);
    CHECK(nlohmann::json::parse(*json)["totals"]["attributes_lost"] == 42);
}

TEST_CASE("table: as JSON the same rows and totals") {
    TemporaryDirectory directory;
    write_sample(directory.path());
    const auto text = table_json(loaded(directory.path()), {.row_limit = 3});
    REQUIRE(text);
    const auto json = nlohmann::json::parse(*text);
    CHECK(json["rows"].size() == 3);
    CHECK(json["rows_total"] == 9);
    CHECK(json["rows"][0]["name"] == "aten::rand");
    CHECK(json["rows"][0]["self_cpu_time_total_us"] == 30.0);
    CHECK(json["self_cpu_time_total_us"] == 194.325);
    CHECK(json["rpcs"]["joined_requests"] == 2);
    CHECK(json["totals"]["lost"] == 0);
    CHECK(json["totals"]["passed_over"] == 0);
    CHECK(json["totals"]["written"] == json["totals"]["records"]);
    CHECK(json["totals"]["lost_known"] == true);
    CHECK(json["nodes"].size() == 3);
    CHECK(json["clock_bound_ns"] == 2500);
}
