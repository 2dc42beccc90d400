// A capture that is asked for iterations: what each process has of them, while it runs and in the dump.
#include <doctest/doctest.h>

#include <string>

#include "tests/unit/agent_data/armed_rig.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;

namespace {

/// A fake process with a source that acts alone, so that nobody waits for its shim.
struct Fake {
    Fake(Node& node, std::uint32_t pid, std::uint32_t parent = 1)
        : segment(node.job, {.pid = pid}), lane(segment.add_lane(1 << 12)) {
        segment.header()->parent_pid = static_cast<std::int32_t>(parent);
        segment.set_level(schema::SourceId::kApi, schema::SourceLevel::kFull, "");
        step = segment.intern("step");
    }
    /// @return its ticks
    std::uint64_t boundary(std::uint64_t number, FakeLane* other = nullptr) {
        const std::uint64_t now = ticks_now();
        const schema::ValueRecord record{
            schema::RecordHeader{schema::RecordKind::kIteration,
                                 1,
                                 schema::record_flags(schema::SourceId::kApi, 0),
                                 {step}}
                .pack(),
            now, number, 0};
        REQUIRE((other == nullptr ? lane : *other).put(&record, 1, now));
        return now;
    }
    FakeSegment segment;
    FakeLane& lane;
    std::uint32_t step = 0;
};

CaptureRequest asked(std::uint32_t count, const std::string& name = "") {
    CaptureRequest request = Node::request();
    request.iterations = {count, 1, name};
    return request;
}

void begin(Node& node, const CaptureRequest& request) {
    const auto prepared = node.engine->prepare(request);
    REQUIRE_MESSAGE(prepared, (prepared ? "" : prepared.error().message));
    REQUIRE(node.engine->begin(request.id, node.engine->node_now()));
}

IterationProgress progress(Node& node) {
    const auto told = node.engine->iterations(0xc0ffee);
    REQUIRE(told);
    return *told;
}

const ProcessReport& report_of(const CaptureReport& report, int pid) {
    for (const ProcessReport& process : report.processes) {
        if (process.pid == pid) return process;
    }
    FAIL("no such process");
    return report.processes.front();
}

/// As the dump's footer tells it. @return null: it does not
const fbs::IterationsT* told_of(const DumpFile& dump, int pid) {
    for (const auto& end : dump.footer.processes) {
        if (dump.processes[end->process].pid == pid) return end->iterations.get();
    }
    return nullptr;
}

}  // namespace

TEST_CASE("engine: iterations are counted in each process, over its lanes, and stand in the dump") {
    Node node;
    node.make_directories();
    Fake one(node, 1), two(node, 2);
    FakeLane& other = one.segment.add_lane(1 << 12);
    node.open();
    begin(node, asked(2));
    const std::uint64_t first = one.boundary(5);
    two.boundary(1);
    CHECK(eventually([&] { return progress(node).under_way == 2; }));
    CHECK(progress(node).least == 0);
    two.boundary(2);
    one.boundary(6, &other);
    const std::uint64_t last = one.boundary(7);
    one.boundary(8, &other);
    CHECK(eventually([&] { return progress(node).done == 1; }));
    CHECK(eventually([&] { return progress(node).least == 1; }));
    CHECK(progress(node).under_way == 1);
    CHECK(progress(node).none == 0);
    CHECK(progress(node).slowest_ns > 0);
    const CaptureReport report = node.stop();
    CHECK_FALSE(node.engine->iterations(0xc0ffee));
    const DumpFile dump = read_dump(report.path);
    check_accounts(dump);
    const fbs::IterationsT* told = told_of(dump, 1);
    REQUIRE(told != nullptr);
    CHECK(told->name == "step");
    CHECK(told->asked == 2);
    CHECK(told->count == 2);
    CHECK(told->first == 5);
    CHECK(told->begin_ticks == first);
    CHECK(told->end_ticks == last);
    REQUIRE(told_of(dump, 2) != nullptr);
    CHECK(told_of(dump, 2)->count == 1);
    CHECK(told_of(dump, 2)->end_ticks == IterationReport::kNoEnd);
    CHECK(report_of(report, 1).iterations->count == 2);
    CHECK(report_of(report, 2).iterations->count == 1);
    // The dump holds what was recorded, whole.
    CHECK(report.records == 6);
}

TEST_CASE("engine: workers and launchers of a process with iterations need none of their own") {
    Node node;
    node.make_directories();
    Fake launcher(node, 10), rank(node, 11, 10), worker(node, 12, 11), stranger(node, 13);
    FakeSegment shell(node.job, {.pid = 14});
    node.open();
    begin(node, asked(1));
    CHECK(eventually([&] { return progress(node).none == 4; }));
    rank.boundary(1);
    rank.boundary(2);
    CHECK(eventually([&] { return progress(node).done == 1; }));
    CHECK(progress(node).none == 1);
    stranger.segment.die(true);
    CHECK(eventually([&] { return progress(node).ended == 1; }));
    CHECK(progress(node).none == 0);
    const CaptureReport report = node.stop();
    const IterationReport had = *report_of(report, 11).iterations;
    for (const int pid : {10, 12}) {
        CHECK(report_of(report, pid).iterations->beside);
        CHECK(report_of(report, pid).iterations->begin_ticks == had.begin_ticks);
        CHECK(report_of(report, pid).iterations->end_ticks == had.end_ticks);
    }
    CHECK_FALSE(report_of(report, 13).iterations->beside);
    CHECK(report_of(report, 13).iterations->name == "");
    CHECK_FALSE(report_of(report, 14).iterations);
    CHECK(told_of(read_dump(report.path), 14) == nullptr);
}

TEST_CASE("engine: iterations of a range's name; other ranges are kept as ever") {
    Node node;
    node.make_directories();
    Fake one(node, 1);
    const auto work = one.segment.intern("work");
    node.open();
    begin(node, asked(2, "step"));
    std::uint64_t begins[4] = {}, ends[4] = {};
    for (int i = 0; i < 4; ++i) {
        begins[i] = ticks_now();
        for (int k = 0; k < 100; ++k) one.lane.range(work, ticks_now(), ticks_now());
        ends[i] = ticks_now();
        one.lane.range(one.step, begins[i], ends[i]);
    }
    CHECK(eventually([&] { return progress(node).done == 1; }));
    const CaptureReport report = node.stop();
    const IterationReport had = *report_of(report, 1).iterations;
    CHECK(had.begin_ticks == begins[0]);
    CHECK(had.end_ticks == ends[1]);
    CHECK(report.records == 404);
    check_accounts(read_dump(report.path));
}

TEST_CASE("engine: a capture without iterations says nothing of any") {
    Node node;
    node.make_directories();
    Fake one(node, 1);
    node.open();
    begin(node, Node::request());
    one.boundary(1);
    const CaptureReport report = node.stop();
    CHECK_FALSE(report_of(report, 1).iterations);
    CHECK(told_of(read_dump(report.path), 1) == nullptr);
}

TEST_CASE("armed: iterations are counted from the instant on, trace by trace") {
    Node node;
    node.make_directories();
    Fake one(node, 1);
    node.open();
    REQUIRE(node.engine->arm(bounds(60 * kSecond)));
    for (std::uint64_t n = 1; n <= 3; ++n) one.boundary(n);
    CHECK(eventually(
        [&] { return one.lane.header()->tail.load() == one.lane.header()->committed.load(); }));
    for (std::uint64_t id = 1; id <= 2; ++id) {
        CaptureRequest request = asked(2);
        request.id = id;
        request.name = "trace" + std::to_string(id);
        begin(node, request);
        const std::uint64_t first = one.boundary(10 * id);
        one.boundary(10 * id + 1);
        const std::uint64_t last = one.boundary(10 * id + 2);
        CHECK(eventually([&] { return node.engine->iterations(id)->done == 1; }));
        const CaptureReport report = node.stop(id);
        REQUIRE(report_of(report, 1).iterations);
        CHECK(report_of(report, 1).iterations->first == 10 * id);
        const DumpFile dump = read_dump(report.path);
        const fbs::IterationsT* told = told_of(dump, 1);
        REQUIRE(told != nullptr);
        CHECK(told->begin_ticks == first);
        CHECK(told->end_ticks == last);
    }
    CaptureRequest plain = Node::request(3);
    plain.name = "plain";
    CHECK_FALSE(report_of(trace(node, plain), 1).iterations);
}

TEST_CASE("armed: a trace's iterations are its own: the next one of the window has none") {
    Node node;
    node.make_directories();
    Fake one(node, 1);
    node.open();
    REQUIRE(node.engine->arm(bounds(60 * kSecond)));
    begin(node, asked(1));
    one.boundary(1);
    one.boundary(2);
    CHECK(eventually([&] { return progress(node).done == 1; }));
    CHECK(report_of(node.stop(), 1).iterations.has_value());
    CaptureRequest plain = Node::request(2);
    plain.name = "plain";
    const CaptureReport without = trace(node, plain);
    CHECK_FALSE(report_of(without, 1).iterations.has_value());
    CHECK(told_of(read_dump(without.path), 1) == nullptr);
}

TEST_CASE("engine: what was seen of a capture's iterations is told while it runs, and not after") {
    Node node;
    node.make_directories();
    Fake one(node, 1);
    node.open();
    begin(node, asked(1));
    one.boundary(1);
    one.boundary(2);
    CHECK(eventually([&] { return progress(node).done == 1; }));
    REQUIRE(node.engine->processes().size() == 1);
    CHECK(node.engine->processes()[0].iterations_seen > 0);
    node.stop();
    CHECK(node.engine->processes()[0].iterations_seen == 0);
}
