// The Chrome trace: layout, counts, rows without partial overlaps, arrows with both ends inside slices.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "sample_job.hpp"
#include "viewer_export/load/job_loader.hpp"
#include "viewer_export/out/table.hpp"
#include "viewer_export/out/trace.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export;
namespace fbs = ringside::fbs;
using nlohmann::json;
using ringside::schema::RecordKind;
using ringside::schema::RpcMode;

namespace {

struct Exported {
    TraceCounts counts;
    json trace;
    std::string text;
};

Exported exported(const model::Job& job, const TemporaryDirectory& directory) {
    const auto counts = write_chrome(job, directory / "trace.json");
    REQUIRE(counts);
    const std::string text = read_text(directory / "trace.json");
    CHECK(text.size() == counts->bytes);
    return {*counts, json::parse(text), text};
}

std::int64_t ns(const json& us) {
    return std::llround(us.get<double>() * 1000);
}

std::vector<json> with_phase(const json& trace, const std::string& phase) {
    std::vector<json> result;
    for (const json& event : trace["traceEvents"]) {
        if (event["ph"] == phase) result.push_back(event);
    }
    return result;
}

struct Slice {
    std::int64_t begin;
    std::int64_t end;
};
using Row = std::pair<std::int64_t, std::int64_t>;

/// Slices by (pid, tid); fails where two of a row overlap in part.
std::map<Row, std::vector<Slice>> slices_of(const json& trace) {
    std::map<Row, std::vector<Slice>> rows;
    for (const json& event : with_phase(trace, "X")) {
        rows[{event["pid"], event["tid"]}].push_back(
            {ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])});
    }
    for (const auto& entry : rows) {
        const auto& row = entry.first;
        const auto& slices = entry.second;
        for (std::size_t i = 0; i < slices.size(); ++i) {
            for (std::size_t k = 0; k < i; ++k) {
                const Slice& a = slices[i];
                const Slice& b = slices[k];
                const bool apart = a.end <= b.begin || b.end <= a.begin;
                const bool nested = (a.begin >= b.begin && a.end <= b.end) ||
                                    (b.begin >= a.begin && b.end <= a.end);
                CHECK_MESSAGE((apart || nested), "row " << row.first << "/" << row.second);
            }
        }
    }
    return rows;
}

/// Pairs of s and f by id, each inside a slice of its row, s the earlier one.
std::size_t flows_of(const json& trace, const std::string& category) {
    const auto rows = slices_of(trace);
    const auto inside = [&](const json& event) {
        for (const Slice& slice : rows.at({event["pid"], event["tid"]})) {
            if (slice.begin <= ns(event["ts"]) && ns(event["ts"]) <= slice.end) return true;
        }
        return false;
    };
    std::map<std::int64_t, json> starts;
    std::size_t pairs = 0;
    for (const json& event : trace["traceEvents"]) {
        if (event["ph"] == "s") {
            CHECK(starts.emplace(event["id"], event).second);
            CHECK(inside(event));
        }
    }
    for (const json& event : trace["traceEvents"]) {
        if (event["ph"] == "f") {
            REQUIRE(starts.contains(event["id"]));
            const json& start = starts[event["id"]];
            CHECK(event["bp"] == "e");
            CHECK(inside(event));
            CHECK(ns(start["ts"]) < ns(event["ts"]));
            CHECK(start["cat"] == event["cat"]);
            pairs += event["cat"] == category;
        }
    }
    return pairs;
}

}  // namespace

TEST_CASE("chrome: Kineto's top level in its order, times relative to a base") {
    TemporaryDirectory directory;
    write_sample(directory.path());
    const Exported result = exported(loaded(directory.path()), directory);
    CHECK(result.trace["schemaVersion"] == 1);
    CHECK(result.trace["deviceProperties"].empty());
    CHECK(result.trace["host_name"] == "host-alpha,host-beta,host-gamma");
    CHECK(result.trace["displayTimeUnit"] == "ms");
    CHECK(result.trace["baseTimeNanoseconds"] == kEpochNs + 1'000);
    CHECK(result.trace["traceName"] == (directory / "trace.json").string());
    CHECK_FALSE(result.trace.contains("distributedInfo"));  // three ranks
    const char* keys[] = {"schemaVersion",       "deviceProperties", "host_name", "displayTimeUnit",
                          "baseTimeNanoseconds", "traceEvents",      "traceName"};
    std::size_t last = 0;
    for (const char* key : keys) {
        const std::size_t at = result.text.find(std::string("\"") + key + "\":");
        REQUIRE(at != std::string::npos);
        CHECK(at >= last);
        last = at;
    }
    const auto slices = with_phase(result.trace, "X");
    CHECK(slices.at(0)["name"] == "aten::rand");
    CHECK(slices.at(0)["cat"] == "cpu_op");
    CHECK(ns(slices.at(0)["ts"]) == 0);
    CHECK(ns(slices.at(0)["dur"]) == 100'000);
    CHECK(result.text.find("\"ts\":0.000,\"dur\":100.000") != std::string::npos);
}

TEST_CASE("chrome: processes of several nodes don't collide although their pids do") {
    TemporaryDirectory directory;
    write_sample(directory.path());
    const Exported result = exported(loaded(directory.path()), directory);
    std::map<std::int64_t, std::string> labels;
    for (const json& event : with_phase(result.trace, "M")) {
        if (event["name"] == "process_labels") labels[event["pid"]] = event["args"]["labels"];
    }
    CHECK(labels == std::map<std::int64_t, std::string>{{1, "CPU, node alpha, pid 4000"},
                                                        {2, "CPU, node beta, pid 4000"},
                                                        {3, "CPU, node gamma, pid 4001"}});
}

TEST_CASE("chrome: one process keeps its pid and its rank") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000, 3, "worker3", 3);
    dump.lane(0, 0, 100).range("a", 0, 10);
    dump.footer(100);
    dump.write(directory / "alpha.rsd");
    const Exported result = exported(loaded(directory.path()), directory);
    CHECK(with_phase(result.trace, "X").at(0)["pid"] == 4000);
    CHECK(with_phase(result.trace, "X").at(0)["tid"] == 100);
    CHECK(result.text.find("\"distributedInfo\": {\"rank\": 3}") != std::string::npos);
}

TEST_CASE("chrome: one slice a range and a half, arrows there and back for each joined call") {
    TemporaryDirectory directory;
    write_sample(directory.path());
    const Exported result = exported(loaded(directory.path()), directory);
    CHECK(result.counts.ranges == 7);
    CHECK(result.counts.rpc_halves == 4);
    CHECK(result.counts.slices == 11);
    CHECK(with_phase(result.trace, "X").size() == 11);
    CHECK(result.counts.rpc_requests == 2);
    CHECK(result.counts.rpc_replies == 2);
    CHECK(flows_of(result.trace, "rpc") == 4);
    for (const json& event : with_phase(result.trace, "X")) {
        if (event["cat"] != "rpc") continue;
        CHECK(event["args"]["Trace id"] == "00000000000011110000000000002222");
        CHECK(event["args"]["State"] == "joined");
        CHECK(event["args"]["Status"] == "ok");
    }
}

TEST_CASE("chrome: what was served tells its request") {
    TemporaryDirectory directory;
    write_sample(directory.path());
    const Exported result = exported(loaded(directory.path()), directory);
    for (const json& event : with_phase(result.trace, "X")) {
        if (event["name"] != "aten::add") continue;
        CHECK(event["args"]["Request"] == "rpc_sync#nested(worker0 -> worker1)");
        CHECK(event["args"]["Record"] == "1.0.0.5");
    }
}

TEST_CASE(
    "chrome: calls in flight at once lie on rows of their own, so do ranges that overlap in part") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000, 0, "worker0", 0);
    LaneMaker& lane = dump.lane(0, 0, 100);
    for (std::uint64_t key = 1; key <= 4; ++key) {
        lane.rpc_begin(100 * key,
                       {false, key, key, 0, "f", "", "worker0", "worker1", RpcMode::kAsync});
    }
    for (std::uint64_t key = 1; key <= 4; ++key) lane.rpc_end(350 + 100 * key, key);
    for (std::uint64_t key = 11; key <= 14; ++key) lane.async_begin("a", 100 * key, key);
    for (std::uint64_t key = 11; key <= 14; ++key) lane.async_end(150 + 100 * key, key);
    lane.range("x", 2000, 2100);
    lane.range("y", 2050, 2150);
    lane.range("z", 2060, 2070);
    dump.footer(3000);
    dump.write(directory / "alpha.rsd");
    const Exported result = exported(loaded(directory.path()), directory);
    const auto rows = slices_of(result.trace);
    CHECK(result.counts.rpc_halves == 4);
    CHECK(result.counts.asyncs == 4);
    CHECK(result.counts.ranges == 3);
    CHECK(rows.size() ==
          4 + 2 + 2);  // calls: 4 at once; asyncs: 2 at once; the thread and its second row
    std::map<std::string, int> names;
    for (const json& event : with_phase(result.trace, "M")) {
        if (event["name"] == "thread_name") ++names[event["args"]["name"]];
    }
    for (const char* name : {"rpc out 1", "rpc out 4", "async 2", "thread 100 (worker)",
                             "thread 100 (worker), row 2"}) {
        CHECK_MESSAGE(names[name] == 1, name);
    }
}

TEST_CASE("chrome: arrows stay whole when clocks make a reply arrive before its request") {
    TemporaryDirectory directory;
    write_sample(directory.path(), false);
    IndexMaker maker({"alpha", "beta", "gamma"});
    maker.clock(1, -1'000'000'000);  // beta a second before its caller
    maker.clock(2, -1'000'200'000);  // gamma a little before beta
    maker.joined({0, 0, 0, 0, 3}, {1, 0, 0, 0, 0});
    maker.joined({1, 0, 0, 0, 6}, {2, 0, 0, 0, 0}, 0);
    maker.write(directory / "job.rsj");
    const Exported result = exported(loaded(directory.path()), directory);
    CHECK(result.counts.rpc_requests == 2);
    CHECK(result.counts.rpc_replies == 2);
    CHECK(flows_of(result.trace, "rpc") == 4);
}

TEST_CASE("chrome: backward operators point back to the forward operator of their sequence") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000, 0, "worker0", 0);
    LaneMaker& forward = dump.lane(0, 0, 100);
    LaneMaker& backward = dump.lane(0, 1, 101);
    forward.op("aten::mul", 100, 110, 5, 1);
    forward.op("aten::mul", 200, 210, 5, 1);  // the sequence came again: the later one counts
    forward.op("aten::add", 300, 310, 6, 2);  // another thread's
    backward.op("MulBackward0", 400, 450, 5, 3, 1, 1);
    backward.op("AddBackward0", 500, 550, 6, 3, 1, 1);
    backward.op("EarlyBackward0", 50, 60, 5, 3, 1, 1);
    dump.footer(1000);
    dump.write(directory / "alpha.rsd");
    const Exported result = exported(loaded(directory.path()), directory);
    CHECK(result.counts.fwdbwd == 1);
    CHECK(flows_of(result.trace, "fwdbwd") == 1);
    CHECK(ns(with_phase(result.trace, "s").at(0)["ts"]) == 200 - 50);
    CHECK(with_phase(result.trace, "f").at(0)["tid"] == 101);
}

TEST_CASE(
    "chrome: iterations lie between boundaries, marks and boundaries are instants, counters "
    "counters") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000, 0, "worker0", 0);
    LaneMaker& lane = dump.lane(0, 0, 100);
    for (std::uint64_t i = 1; i <= 4; ++i)
        lane.value(RecordKind::kIteration, "Optimizer.step#SGD.step", 100 * i, i);
    for (std::uint64_t i = 1; i <= 2; ++i)
        lane.value(RecordKind::kIteration, "Optimizer.step#Adam.step", 100 * i + 5, i);
    lane.value(RecordKind::kMark, "here", 450, 0);
    lane.value(RecordKind::kCounter, "queue", 460, 17);
    dump.footer(1000);
    dump.write(directory / "alpha.rsd");
    const Exported result = exported(loaded(directory.path()), directory);
    CHECK(result.counts.iterations == 4);
    CHECK(result.counts.instants == 7);
    CHECK(result.counts.counters == 1);
    std::vector<std::string> names;
    for (const json& event : with_phase(result.trace, "X")) names.push_back(event["name"]);
    std::sort(names.begin(), names.end());
    CHECK(names == std::vector<std::string>{"Optimizer.step#Adam.step#1", "ProfilerStep#1",
                                            "ProfilerStep#2", "ProfilerStep#3"});
    CHECK(with_phase(result.trace, "C").at(0)["args"]["value"] == 17);
}

TEST_CASE("chrome: what has no end says why and is drawn to the last evidence") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000, 0, "worker0", 0);
    LaneMaker& lane = dump.lane(0, 0, 100);
    lane.rpc_begin(100, {true, 1, 71, 0, "f", "", "worker0", "worker1"});
    lane.open("stuck", 150);
    dump.end(0, fbs::Fate::Killed, 400);
    dump.footer(1000);
    dump.write(directory / "alpha.rsd");
    const Exported result = exported(loaded(directory.path()), directory);
    const auto slices = with_phase(result.trace, "X");
    REQUIRE(slices.size() == 2);
    for (const json& slice : slices) {
        CHECK(slice["args"]["Ended"].get<std::string>().starts_with("no: its process died"));
        CHECK(ns(slice["ts"]) + ns(slice["dur"]) == 300);
        CHECK_FALSE(slice["args"].contains("Status"));
    }
    CHECK(result.counts.rpc_requests == 0);
}

TEST_CASE("chrome: a target that can't be written is one error, and nothing is left behind") {
    TemporaryDirectory directory;
    write_sample(directory.path());
    const model::Job job = loaded(directory.path());
    const std::size_t before = directory.files();
    for (const auto& path : {directory / "missing" / "trace.json", directory.path(),
                             std::filesystem::path("/dev/full/x")}) {
        const auto counts = write_chrome(job, path);
        REQUIRE_FALSE(counts);
        CHECK(counts.error().message.find(path.string()) != std::string::npos);
    }
    CHECK(directory.files() == before);
}

TEST_CASE("chrome: names of any bytes leave the file parseable") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000, 0, "work\"er\xff", 0);
    LaneMaker& lane = dump.lane(0, 0, 100);
    lane.range("a\"b\\\n\xc3\x28\x01", 0, 10);
    lane.rpc_begin(20, {false, 1, 1, 0, "f\"\xfe", "", "w\\0", "w\n1", RpcMode::kAsync});
    dump.footer(100);
    dump.write(directory / "alpha.rsd");
    const Exported result = exported(loaded(directory.path()), directory);
    CHECK(result.counts.slices == 2);
}

TEST_CASE("chrome: domains, categories, colours and payloads of ranges, async ranges and marks") {
    using ringside::schema::PayloadType;
    const TemporaryDirectory directory;
    DumpMaker dump("a");
    dump.process(0, 100);
    dump.attributes(0, "range", "domain", "category", 0x80ff0000, PayloadType::kSigned);
    dump.attributes(0, "async", "", "", 0, PayloadType::kDouble);
    dump.attributes(0, "mark", "domain", "", 0, PayloadType::kUnsigned);
    LaneMaker& lane = dump.lane(0, 0, 100);
    lane.raw({lane.range_header("range"), 1000, 2000, static_cast<std::uint64_t>(-42)});
    lane.range("plain", 1100, 1200);
    lane.async_begin("async", 1300, 7);
    lane.async_end(1400, 7);
    lane.value(RecordKind::kMark, "mark", 1500, 0);
    dump.footer(3000);
    dump.write(directory / "a.rsd");
    const auto job = load_job({{directory.path()}});
    REQUIRE(job);
    std::map<std::string, json> args;
    const Exported written = exported(*job, directory);
    for (const json& event : written.trace["traceEvents"]) args[event["name"]] = event["args"];
    CHECK(args["range"]["Domain"] == "domain");
    CHECK(args["range"]["Category"] == "category");
    CHECK(args["range"]["Colour"] == "#80ff0000");
    CHECK(args["range"]["Payload"] == -42);
    CHECK_FALSE(args["plain"].contains("Domain"));
    CHECK_FALSE(args["plain"].contains("Payload"));
    CHECK(args["async"]["Payload"] == 0.0);
    CHECK_FALSE(args["async"].contains("Colour"));
    CHECK(args["mark"]["Domain"] == "domain");
    CHECK(args["mark"]["Payload"] == 0);
    const auto table = table_json(*job, {});
    REQUIRE(table);
    const json rows = json::parse(*table)["rows"];
    for (const json& row : rows) {
        CHECK(row.contains("domains") == (row["name"] == "range"));
        if (row["name"] != "range") continue;
        CHECK(row["domains"] == json({"domain"}));
        CHECK(row["categories"] == json({"category"}));
    }
}
