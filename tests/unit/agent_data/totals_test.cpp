// What an engine tells who watches it: totals over captures and windows, and how long iterations take.
#include <doctest/doctest.h>

#include "agent/drain/iteration_pace.hpp"
#include "tests/unit/agent_data/armed_rig.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;

namespace {

bool boundary(FakeLane& lane, std::uint32_t name, std::uint64_t ticks, std::uint64_t number) {
    const schema::ValueRecord record{
        schema::RecordHeader{schema::RecordKind::kIteration,
                             1,
                             schema::record_flags(schema::SourceId::kApi, 0),
                             {name}}
            .pack(),
        ticks, number, 0};
    return lane.put(&record, 1, ticks);
}

}  // namespace

TEST_CASE("pace: an iteration goes from a boundary to the next of the name that came first") {
    IterationPace pace;
    pace.take({1}, 1000, 7);
    CHECK(pace.length_ticks() == 0);
    pace.take({2}, 1010, 1);
    pace.take({2}, 1020, 2);
    pace.take({1}, 1300, 8);
    CHECK(pace.length_ticks() == 300);
    CHECK(pace.count() == 1);
}

TEST_CASE("pace: boundaries that were dropped are counted by their neighbours' numbers") {
    IterationPace pace;
    pace.take({1}, 1000, 1);
    pace.take({1}, 1400, 5);
    CHECK(pace.length_ticks() == 100);
    CHECK(pace.count() == 4);
}

TEST_CASE("pace: a number or a time that goes back begins anew") {
    IterationPace pace;
    pace.take({1}, 1000, 5);
    pace.take({1}, 1100, 6);
    pace.take({1}, 1500, 1);
    pace.take({1}, 1400, 2);
    CHECK(pace.count() == 1);
    CHECK(pace.length_ticks() == 100);
    pace.take({1}, 1450, 3);
    CHECK(pace.count() == 2);
    CHECK(pace.length_ticks() == 50);
}

TEST_CASE("engine: totals go on over captures and windows, and processes that are gone") {
    Node node;
    node.open();
    CHECK(node.engine->status().totals.events == 0);
    std::uint64_t put_so_far = 0;
    const auto totals_are = [&](std::uint64_t events) {
        return eventually([&] { return node.engine->status().totals.events == events; });
    };
    {
        FakeSegment fake(node.job, {});
        FakeLane& lane = fake.add_lane(1 << 10);
        const auto name = fake.intern("op");
        REQUIRE(node.sees(1));
        REQUIRE(put(lane, name, ++put_so_far));  // nobody keeps it
        for (std::uint64_t id : {1, 2}) {
            CaptureRequest request = Node::request(id);
            request.name += std::to_string(id);
            REQUIRE(node.engine->prepare(request));
            REQUIRE(node.engine->begin(id, node.engine->node_now()));
            REQUIRE(put(lane, name, ++put_so_far));
            CHECK(totals_are(id));
            CHECK(node.stop(id).records == 1);
            CHECK(node.engine->status().totals.events == id);
        }
        REQUIRE(node.engine->arm(bounds(kSecond)));
        REQUIRE(put(lane, name, ++put_so_far));
        CHECK(totals_are(3));
        CHECK(node.engine->status().totals.bytes > 0);
    }
    REQUIRE(node.sees(0));
    REQUIRE(node.engine->disarm());
    CHECK(node.engine->status().totals.events == 3);
}

TEST_CASE(
    "engine: the time of an iteration is known while an armed window runs, and is the slowest "
    "process's") {
    Node node;
    node.open();
    FakeSegment one(node.job, {.pid = 1}), two(node.job, {.pid = 2});
    FakeLane &first = one.add_lane(1 << 10), &second = two.add_lane(1 << 10);
    const auto step = one.intern("step"), other = two.intern("step");
    REQUIRE(node.sees(2));
    REQUIRE(node.engine->arm(bounds(100 * kSecond)));
    CHECK(node.engine->status().iteration_ns == -1);
    const Calibration& clock = node.engine->calibration();
    const auto at = [&](std::int64_t ns) {
        return clock.ticks_at({clock.node_ns({ticks_now()}).value + ns}).value;
    };
    const std::uint64_t begin = at(0), short_end = at(20'000'000), long_end = at(50'000'000);
    REQUIRE(boundary(first, step, begin, 1));
    REQUIRE(boundary(second, other, begin, 1));
    REQUIRE(boundary(first, step, short_end, 2));
    REQUIRE(boundary(second, other, long_end, 2));
    CHECK(eventually([&] { return node.engine->status().totals.iterations == 2; }));
    const double slowest = double(node.engine->status().iteration_ns);
    CHECK(slowest == doctest::Approx(50e6).epsilon(0.01));
    for (const ProcessReport& process : node.engine->processes()) {
        CHECK(process.iterations_seen == 1);
        CHECK(double(process.iteration_ns) ==
              doctest::Approx(process.pid == 1 ? 20e6 : 50e6).epsilon(0.01));
    }
    REQUIRE(node.engine->disarm());
    CHECK(node.engine->status().iteration_ns == -1);
}

TEST_CASE("engine: a process that a window leaves out takes nothing of it along when it goes") {
    Node node;
    node.open();
    FakeSegment one(node.job, {.pid = 101});
    auto other = std::make_unique<FakeSegment>(node.job, SegmentSpec{.pid = 102});
    FakeLane &lane = one.add_lane(1 << 10), &others = other->add_lane(1 << 10);
    const auto name = one.intern("op"), others_name = other->intern("op");
    REQUIRE(node.sees(2));
    node.start();
    REQUIRE(put(lane, name, 1));
    REQUIRE(put(others, others_name, 1));
    CHECK(node.stop().records == 2);
    ArmRequest request = bounds(kSecond / 20);
    request.pids = {101};
    REQUIRE(node.engine->arm(request));
    other.reset();
    REQUIRE(node.sees(1));
    // All that was there when it ended has aged out: it is forgotten.
    REQUIRE(eventually([&] {
        REQUIRE(put(lane, name, 2));
        const EngineStatus status = node.engine->status();
        return status.window->holds_ns < status.window->armed_ns - kSecond / 4;
    }));
    const EngineStatus status = node.engine->status();
    CHECK(status.totals.events == 2 + status.window->records + status.window->aged_records);
}
