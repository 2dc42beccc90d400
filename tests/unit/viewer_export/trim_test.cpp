// Of a capture by iterations views show these alone: what lies around them stays in the dump.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sample_job.hpp"
#include "viewer_export/load/rpc_records.hpp"
#include "viewer_export/out/table.hpp"
#include "viewer_export/out/trace.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export;
using namespace ringside::viewer_export::model;
namespace fbs = ringside::fbs;
using nlohmann::json;
using ringside::schema::RecordKind;

namespace {

using Texts = std::vector<std::string>;

constexpr std::uint64_t kNoEnd = ~0ull;

fbs::IterationsT iterations(const std::string& name, std::uint32_t asked, std::uint32_t count,
                            std::uint64_t begin, std::uint64_t end) {
    fbs::IterationsT table;
    table.name = name;
    table.asked = asked;
    table.count = count;
    table.first = 1;
    table.begin_ticks = begin;
    table.end_ticks = end;
    return table;
}

/// One dump with one process and one lane, with boundaries at 100, 200, ... 600.
struct Steps {
    Steps() : dump("alpha") {
        dump.process(0, 4000, 0, "worker0", 0);
        lane = &dump.lane(0, 0, 100);
        for (std::uint64_t n = 1; n <= 6; ++n) {
            lane->range("work", 100 * n - 50, 100 * n - 40);
            lane->value(RecordKind::kIteration, "step", 100 * n, n);
        }
    }
    Job load(const fbs::IterationsT& kept) {
        dump.end(0, 1000, kept);
        dump.footer(1000);
        dump.write(directory / "alpha.rsd");
        return loaded(directory.path());
    }
    TemporaryDirectory directory;
    DumpMaker dump;
    LaneMaker* lane;
};

Texts range_names(const Job& job) {
    Texts names;
    for (const Lane& lane : job.lanes) {
        for (const Range& range : lane.ranges) names.push_back(job.names[range.name]);
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::vector<std::uint64_t> boundaries(const Job& job) {
    std::vector<std::uint64_t> numbers;
    for (const Value& value : job.values) {
        if (value.kind == RecordKind::kIteration) numbers.push_back(value.value);
    }
    return numbers;
}

}  // namespace

TEST_CASE("iterations: N of them are shown, with N + 1 boundaries") {
    Steps steps;
    const Job job = steps.load(iterations("step", 3, 3, 200, 500));
    CHECK(range_names(job) == Texts{"work", "work", "work"});
    CHECK(boundaries(job) == std::vector<std::uint64_t>{2, 3, 4, 5});
    CHECK(job.totals.events == 7);
    CHECK(job.totals.records == 12);
    CHECK(job.totals.outside_iterations == 5);
}

TEST_CASE("iterations: what encloses their begin or end stays, what touches it from outside goes") {
    Steps steps;
    steps.lane->range("ends at the begin", 150, 200);
    steps.lane->range("begins at the begin", 200, 210);
    steps.lane->range("no length at the begin", 200, 200);
    steps.lane->range("over the begin", 190, 201);
    steps.lane->range("over the end", 499, 600);
    steps.lane->range("begins at the end", 500, 510);
    steps.lane->range("around all", 10, 900);
    steps.lane->open("open since before", 20);
    steps.lane->open("open afterwards", 501);
    const Job job = steps.load(iterations("step", 3, 3, 200, 500));
    CHECK(range_names(job) == Texts{"around all", "begins at the begin", "no length at the begin",
                                    "open since before", "over the begin", "over the end", "work",
                                    "work", "work"});
}

TEST_CASE("iterations: marks, counters and asynchronous ranges are left out alike") {
    Steps steps;
    for (const std::uint64_t ticks : {199, 200, 499, 500})
        steps.lane->value(RecordKind::kMark, "mark", ticks, ticks);
    std::uint64_t key = 0;
    for (const std::uint64_t begin : {150, 450, 550}) {
        steps.lane->async_begin("async", begin, ++key);
        steps.lane->async_end(begin + 40, key);
    }
    const Job job = steps.load(iterations("step", 3, 3, 200, 500));
    REQUIRE(job.asyncs.size() == 1);
    CHECK(job.asyncs[0].key == 2);
    std::vector<std::uint64_t> marks;
    for (const Value& value : job.values) {
        if (value.kind == RecordKind::kMark) marks.push_back(value.value);
    }
    CHECK(marks == std::vector<std::uint64_t>{200, 499});
}

TEST_CASE("iterations: of fewer than asked all that came after the first is shown") {
    Steps steps;
    const Job job = steps.load(iterations("step", 9, 4, 200, kNoEnd));
    CHECK(boundaries(job) == std::vector<std::uint64_t>{2, 3, 4, 5, 6});
    CHECK(range_names(job).size() == 4);
}

TEST_CASE("iterations: a dump that says nothing of them is shown whole") {
    Steps steps;
    steps.dump.end(0, fbs::Fate::Running, 1000);
    steps.dump.footer(1000);
    steps.dump.write(steps.directory / "alpha.rsd");
    const Job job = loaded(steps.directory.path());
    CHECK(boundaries(job).size() == 6);
    CHECK(job.totals.outside_iterations == 0);
    CHECK_FALSE(job.processes[0].iterations);
    // And so is one without a footer.
    Steps cut;
    cut.lane->flush();
    cut.dump.write(cut.directory / "alpha.rsd");
    CHECK(boundaries(loaded(cut.directory.path())).size() == 6);
}

TEST_CASE(
    "iterations: the same dump twice is trimmed, two captures of one process are shown whole") {
    Steps steps;
    steps.load(iterations("step", 3, 3, 200, 500));
    const auto path = steps.directory / "alpha.rsd";
    const auto twice = load_job({{path, path}, true, {}});
    REQUIRE(twice);
    CHECK(boundaries(*twice).size() == 4);
    Steps other;
    other.load(iterations("step", 2, 2, 200, 400));
    const auto both = load_job({{path, other.directory / "alpha.rsd"}, true, {}});
    REQUIRE(both);
    CHECK(boundaries(*both).size() == 6);
}

TEST_CASE("iterations: a call goes or stays with both halves, by its client's") {
    TemporaryDirectory directory;
    DumpMaker client("alpha"), server("beta");
    client.process(0, 4000, 0, "worker0", 0);
    server.process(0, 4001, 1, "worker1", 1);
    LaneMaker& out = client.lane(0, 0, 100);
    LaneMaker& in = server.lane(0, 0, 101);
    IndexMaker index({"alpha", "beta"});
    std::uint64_t key = 0;
    // Before, within, within for the client alone, after.
    for (const std::uint64_t begin : {120, 320, 480, 520}) {
        ++key;
        const auto from = out.rpc_begin(
            begin, {false, key, 70 + key, 0, "f" + std::to_string(key), "", "worker0", "worker1"});
        out.rpc_end(begin + 60, key);
        const auto to = in.rpc_begin(begin + 25, {true, key, 70 + key, 0, "f" + std::to_string(key),
                                                  "", "worker1", "worker0"});
        in.rpc_end(begin + 30, key);
        index.joined({0, 0, 0, 0, from}, {1, 0, 0, 0, to});
    }
    client.end(0, 1000, iterations("step", 1, 1, 200, 500));
    server.end(0, 1000, iterations("", 1, 0, 200, 500));
    client.footer(1000);
    server.footer(1000);
    client.write(directory / "alpha.rsd");
    server.write(directory / "beta.rsd");
    // An offline join must know them all.
    auto nodes = rpc_records({directory / "alpha.rsd"});
    REQUIRE(nodes);
    int halves = 0;
    nodes->at(0).scan([&](const RpcRecord& record) { halves += record.begin ? 1 : 0; });
    CHECK(halves == 4);
    index.write(directory / "job.rsj");
    const Job job = loaded(directory.path());
    Texts shown;
    for (const Half& half : job.halves) {
        if (half.shown()) shown.push_back(job.names[half.name]);
    }
    std::sort(shown.begin(), shown.end());
    CHECK(shown == Texts{"f2", "f2", "f3", "f3"});
    CHECK(job.totals.joined_requests == 2);
    CHECK(job.totals.events == 4);
    const auto table = table_json(job, {});
    REQUIRE(table);
    CHECK(json::parse(*table)["rows"].size() == 2);
    const auto counts = write_chrome(job, directory / "trace.json", {});
    REQUIRE(counts);
    CHECK(counts->rpc_halves == 4);
    CHECK(counts->rpc_requests == 2);
}

TEST_CASE(
    "iterations: the table says which are shown, and the trace draws those that were asked for") {
    Steps steps;
    for (std::uint64_t n = 1; n <= 30; ++n)
        steps.lane->value(RecordKind::kIteration, "more often", 10 * n + 200, n);
    const Job job = steps.load(iterations("step", 3, 3, 200, 500));
    const auto text = render_table(job, {});
    REQUIRE(text);
    CHECK(text->find("Iterations: 3 of step in 1 process; outside of them ") != std::string::npos);
    const json table = json::parse(*table_json(job, {}));
    REQUIRE(table["iterations"].size() == 1);
    CHECK(table["iterations"][0]["name"] == "step");
    CHECK(table["iterations"][0]["count"] == 3);
    CHECK(table["totals"]["outside_iterations"] == job.totals.outside_iterations);
    REQUIRE(write_chrome(job, steps.directory / "trace.json", {}));
    const json trace = json::parse(read_text(steps.directory / "trace.json"));
    Texts names;
    for (const json& event : trace["traceEvents"]) {
        const std::string name = event.value("name", "");
        if (name.starts_with("ProfilerStep")) names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    CHECK(names == Texts{"ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4"});
}
