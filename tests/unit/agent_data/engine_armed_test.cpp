// What may be asked of an armed engine, and what is refused: other options, other processes, the end of the window.
#include <doctest/doctest.h>

#include <thread>

#include "schema/lane_life.hpp"
#include "tests/unit/agent_data/armed_rig.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;

TEST_CASE("armed: history without a window is refused, and says what to do") {
    Node node;
    node.open();
    const auto refused = node.engine->prepare(wanted(kSecond));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == schema::ErrorCode::kRefused);
    CHECK(refused.error().message.find("ringside arm") != std::string::npos);
}

TEST_CASE("armed: a trace of what the window was not armed for is refused") {
    Node node;
    node.open();
    FakeSegment one(node.job, {.pid = 101}), other(node.job, {.pid = 102});
    REQUIRE(node.sees(2));
    ArmRequest request = bounds(kSecond);
    request.pids = {101};
    REQUIRE(node.engine->arm(request));
    CHECK(node.engine->prepare(wanted(0)).error().message.find("101 alone") != std::string::npos);
    CaptureRequest shapes = wanted(0);
    shapes.selection.pids = {101};
    shapes.options = schema::capture_options(true, false);
    CHECK(node.engine->prepare(shapes).error().message.find("--record-shapes") !=
          std::string::npos);
    CaptureRequest sources = wanted(0);
    sources.selection.pids = {101};
    sources.source_mask = 2;
    CHECK_FALSE(node.engine->prepare(sources));
    CHECK(node.engine->arm(bounds(kSecond)).error().code == schema::ErrorCode::kRefused);
    CaptureRequest chosen = wanted(0);
    chosen.selection.pids = {101};
    const CaptureReport report = trace(node, chosen);
    REQUIRE(report.processes.size() == 1);
    CHECK(report.processes[0].pid == 101);
}

TEST_CASE("armed: again it changes the bounds; disarmed it leaves nothing and the word is off") {
    Node node;
    node.open();
    FakeSegment fake(node.job, {});
    FakeLane& lane = fake.add_lane(1 << 10);
    const auto name = fake.intern("op");
    REQUIRE(node.sees(1));
    REQUIRE(node.engine->arm(bounds(10 * kSecond)));
    CHECK(schema::CaptureWord::unpack(FakeControl(node.job).word()).on);
    CHECK_FALSE(node.engine->status().capturing);
    REQUIRE(put(lane, name, 1));
    const auto again = node.engine->arm(bounds(20 * kSecond, 8 << 20));
    REQUIRE(again);
    CHECK(again->changed);
    CHECK(again->window.asked.keep.value == 20 * kSecond);
    CHECK(again->window.asked.max_bytes == 8 << 20);
    CHECK(pieces_in(node.job) > 0);
    REQUIRE(eventually([&] { return node.engine->status().window->records == 1; }));
    const auto disarmed = node.engine->disarm();
    REQUIRE(disarmed);
    REQUIRE(disarmed->window);
    CHECK(disarmed->window->records == 1);
    CHECK(pieces_in(node.job) == 0);
    CHECK_FALSE(schema::CaptureWord::unpack(FakeControl(node.job).word()).on);
    CHECK_FALSE(node.engine->status().window);
    CHECK_FALSE(node.engine->disarm()->window);
    // And a capture of the usual kind goes as ever.
    node.start();
    REQUIRE(put(lane, name, 2));
    CHECK(numbers(read_dump(node.stop().path)) == std::vector<std::uint64_t>{2});
}

TEST_CASE("armed: while a trace is being cut the window can't go; other traces wait their turn") {
    Node node;
    node.open();
    FakeSegment fake(node.job, {});
    REQUIRE(node.sees(1));
    REQUIRE(node.engine->arm(bounds(kSecond)));
    REQUIRE(node.engine->prepare(wanted(0)));
    CHECK(node.engine->status().capturing);
    CHECK(node.engine->disarm().error().code == schema::ErrorCode::kRefused);
    CHECK(node.engine->prepare(wanted(0, 5)).error().code == schema::ErrorCode::kRefused);
    CHECK(node.engine->prepare(wanted(0)));
    // Given up before it began.
    const CaptureReport report = node.stop();
    CHECK(report.records == 0);
    CHECK(node.engine->stop(0xc0ffee, node.engine->node_now()));
    CHECK(node.engine->disarm());
}

TEST_CASE("armed: the dump's own bound is kept, and what it refuses is counted as lost") {
    Node node;
    node.open();
    FakeSegment fake(node.job, {});
    FakeLane& lane = fake.add_lane(1 << 15);
    const auto name = fake.intern("op");
    REQUIRE(node.sees(1));
    REQUIRE(node.engine->arm(bounds(60 * kSecond)));
    constexpr std::uint64_t kCount = 400'000;
    for (std::uint64_t i = 0; i < kCount; ++i) {
        REQUIRE(put(lane, name, i));
        if (i % 10'000 == 0) {
            REQUIRE(eventually([&] {
                return lane.header()->tail.load() + 1000 > lane.header()->committed.load();
            }));
        }
    }
    CaptureRequest request = wanted(30 * kSecond);
    request.max_bytes = 1 << 20;
    const CaptureReport report = trace(node, request);
    CHECK_FALSE(report.complete);
    CHECK(report.bytes <= 1 << 20);
    const DumpFile dump = read_dump(report.path);
    check_accounts(dump);
    REQUIRE(dump.footer.lanes.size() == 1);
    CHECK(dump.footer.lanes[0]->written == kCount);
    CHECK(dump.footer.lanes[0]->lost > 0);
    CHECK(report.records + report.lost == kCount);
}

TEST_CASE(
    "armed: an engine that ends in order removes its window, what a killed one left is said") {
    Node node;
    node.open();
    FakeSegment fake(node.job, {});
    REQUIRE(node.sees(1));
    REQUIRE(node.engine->arm(bounds(kSecond)));
    const std::string piece = node.job + "/" + piece_name(1);
    REQUIRE(exists(piece));
    REQUIRE(::system(("cp " + piece + " " + node.top.sub("kept")).c_str()) == 0);
    node.engine.reset();
    CHECK_FALSE(exists(piece));
    REQUIRE(::system(("cp " + node.top.sub("kept") + " " + piece).c_str()) == 0);
    node.open();
    const EngineStatus status = node.engine->status();
    CHECK_FALSE(status.window);
    CHECK(status.left_pieces == 1);
    CHECK(status.left_bytes > 0);
    CHECK(exists(piece));
    CHECK(node.engine->disarm()->left_pieces == 1);
    CHECK_FALSE(exists(piece));
}

TEST_CASE("armed: a lane whose thread ended right before the end of the window is given back") {
    Node node;
    node.open();
    FakeSegment fake(node.job, {});
    FakeLane& lane = fake.add_lane(1 << 10);
    const auto name = fake.intern("op");
    const auto is_free = [&] {
        return schema::lane_state(lane.header()->state.load()) == schema::LaneState::kFree;
    };
    REQUIRE(node.sees(1));
    // At whatever instant the end finds it: not taken yet, taken and not written, written.
    for (int milliseconds = 0; milliseconds < 30; milliseconds += 2) {
        REQUIRE(node.engine->arm(bounds(10 * kSecond)));
        REQUIRE(put(lane, name, 1));
        schema::release_lane(*lane.header());
        std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
        REQUIRE(node.engine->disarm());
        REQUIRE(eventually(is_free));
        REQUIRE(schema::claim_lane(*lane.header()));
    }
}

TEST_CASE("armed: while a disarm waits for shims nothing is cut out of its window, nor changed") {
    Node node;
    node.open();
    FakeSegment fake(node.job, {});
    REQUIRE(node.sees(1));
    {
        const FakeShim shim(node.job, fake);
        REQUIRE(node.engine->arm(bounds(10 * kSecond)));
        REQUIRE(eventually([&] { return node.engine->processes().at(0).attached; }));
    }
    // Its shim hangs from here on: a disarm waits for it, as long as it does.
    const FakeControl control(node.job);
    std::thread first([&] { CHECK(node.engine->disarm()); });
    REQUIRE(eventually([&] { return !schema::CaptureWord::unpack(control.word()).on; }));
    std::thread second([&] { CHECK(node.engine->disarm()); });
    const auto traced = node.engine->prepare(wanted(kSecond));
    const auto changed = node.engine->arm(bounds(20 * kSecond));
    second.join();
    first.join();
    REQUIRE_FALSE(traced);
    CHECK(traced.error().message.find("is being disarmed") != std::string::npos);
    REQUIRE_FALSE(changed);
    CHECK(changed.error().message.find("is being disarmed") != std::string::npos);
    CHECK_FALSE(node.engine->status().window);
}
