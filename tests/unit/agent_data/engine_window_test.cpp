// An armed engine's traces: they begin before their trigger and hold exactly what their range does; what has aged out is said.
#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <thread>

#include "tests/unit/agent_data/armed_rig.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;

TEST_CASE("armed: a trace holds what came before its instant, as far back as it asks") {
    Node node;
    node.open();
    FakeSegment fake(node.job, {});
    FakeLane& lane = fake.add_lane(1 << 15);
    const auto early = fake.intern("early"), late = fake.intern("late");
    REQUIRE(node.sees(1));
    REQUIRE(node.engine->arm(bounds(60 * kSecond)));
    for (std::uint64_t i = 0; i < 5000; ++i) REQUIRE(put(lane, early, i));
    const Nanoseconds middle = node.engine->node_now();
    for (std::uint64_t i = 5000; i < 9000; ++i) REQUIRE(put(lane, late, i));
    // The history reaches back to the middle exactly: the instant is later by as much.
    REQUIRE(node.engine->prepare(wanted(kSecond)));
    REQUIRE(node.engine->begin(0xc0ffee, {middle.value + kSecond}));
    REQUIRE(eventually([&] { return node.engine->node_now().value > middle.value + kSecond; }));
    for (std::uint64_t i = 9000; i < 9500; ++i) REQUIRE(put(lane, late, i));
    const CaptureReport report = node.stop();
    const DumpFile dump = read_dump(report.path);
    check_accounts(dump);
    CHECK(report.complete);
    CHECK(report.window_note == "");
    CHECK(report.history_ns == doctest::Approx(kSecond).epsilon(0.0001));
    const auto found = numbers(dump);
    REQUIRE(found.size() == 4500);
    for (std::uint64_t i = 0; i < 4500; ++i) CHECK(found[i] == 5000 + i);
    CHECK(report.records == 4500);
    REQUIRE(dump.footer.lanes.size() == 1);
    CHECK(dump.footer.lanes[0]->kept == 4500);
    CHECK(dump.footer.lanes[0]->outside <= 5000);
    CHECK(dump.header.capture_id == 0xc0ffee);
    // The window goes on: a second trace of all gets all, and without history there is nothing.
    CaptureRequest more = wanted(50 * kSecond, 2);
    more.name = "all";
    const CaptureReport second = trace(node, more);
    CHECK(second.records == 9500);
    CHECK(second.lost == 0);
    CHECK(second.window_note == "of 50 s: it was armed then");
    const DumpFile all = read_dump(second.path);
    check_accounts(all);
    CHECK(numbers(all).size() == 9500);
    CaptureRequest plain = wanted(0, 3);
    plain.name = "plain";
    const CaptureReport nothing = trace(node, plain);
    CHECK(nothing.records == 0);
    CHECK(nothing.history_ns == 0);
    check_accounts(read_dump(nothing.path));
}

TEST_CASE("armed: history that is older than the window is said, not guessed") {
    Node node;
    node.open();
    FakeSegment fake(node.job, {});
    FakeLane& lane = fake.add_lane(1 << 12);
    const auto name = fake.intern("op");
    REQUIRE(node.sees(1));
    REQUIRE(node.engine->arm(bounds(60 * kSecond)));
    REQUIRE(put(lane, name, 1));
    const CaptureReport report = trace(node, wanted(30 * kSecond));
    CHECK(report.history_ns < 30 * kSecond);
    CHECK(report.window_note == "of 30 s: it was armed then");
    CHECK(numbers(read_dump(report.path)) == std::vector<std::uint64_t>{1});
}

TEST_CASE(
    "armed: under a flood the bound holds, what aged out is counted, and nothing comes twice") {
    Node node;
    node.open();
    FakeSegment fake(node.job, {});
    constexpr int kLanes = 2;
    constexpr std::uint64_t kBound = 2 << 20;
    std::vector<FakeLane*> lanes;
    for (int i = 0; i < kLanes; ++i) lanes.push_back(&fake.add_lane(1 << 12));
    const auto name = fake.intern("flood");
    REQUIRE(node.sees(1));
    REQUIRE(node.engine->arm(bounds(60 * kSecond, kBound)));
    std::atomic<bool> quit{false};
    std::vector<std::thread> threads;
    for (FakeLane* lane : lanes) {
        threads.emplace_back([&, lane] {
            for (std::uint64_t i = 0; !quit; ++i) put(*lane, name, i);
        });
    }
    REQUIRE(eventually([&] { return node.engine->status().window->aged_records > 100'000; }));
    CHECK(node.engine->status().window->bytes <= kBound);
    const CaptureReport report = trace(node, wanted(30 * kSecond));
    CHECK(node.engine->status().window->bytes <= 2 * kBound);
    quit = true;
    for (std::thread& thread : threads) thread.join();
    CHECK(report.window_note == "of 30 s: older has aged out (bound 2 MiB)");
    const DumpFile dump = read_dump(report.path);
    check_accounts(dump);
    REQUIRE(dump.footer.lanes.size() == kLanes);
    std::map<std::uint32_t, std::vector<std::uint64_t>> found;
    for (const DumpRecord& record : dump.records) found[record.lane].push_back(record.words[3]);
    for (const auto& lane : dump.footer.lanes) {
        const auto& numbers = found[lane->lane];
        REQUIRE(numbers.size() > 1000);
        std::uint64_t missing = 0;
        for (std::size_t i = 1; i < numbers.size(); ++i) {
            REQUIRE(numbers[i] > numbers[i - 1]);
            missing += numbers[i] - numbers[i - 1] - 1;
        }
        // Each gap is counted; a loss at either end of the range may be outside of what is found.
        CHECK(lane->lost >= missing);
        CHECK(lane->kept == numbers.size());
    }
}

TEST_CASE("armed: a trace that is longer than its window is whole, its halves and its dead too") {
    Node node;
    node.open();
    auto dead = std::make_unique<FakeSegment>(node.job, SegmentSpec{.pid = 102});
    FakeSegment fake(node.job, {});
    FakeLane& lane = fake.add_lane(1 << 12);
    const auto name = fake.intern("op"), peer = fake.intern("peer");
    REQUIRE(node.sees(2));
    REQUIRE(node.engine->arm(bounds(kSecond / 5)));
    REQUIRE(node.engine->prepare(wanted(0)));
    REQUIRE(node.engine->begin(0xc0ffee, node.engine->node_now()));
    REQUIRE(lane.rpc_begin(name, ticks_now(), 1, false, name, peer, 11));
    REQUIRE(lane.rpc_end(ticks_now(), 1));
    dead->die(false);
    REQUIRE(node.sees(1));
    // Lost at its beginning: more at once than the lane holds.
    std::uint64_t lost = 0, number = 0;
    for (; number < 10'000; ++number) lost += put(lane, name, number) ? 0 : 1;
    CHECK(lost > 0);
    const auto long_gone = [&] {
        static_cast<void>(put(lane, name, number++));
        const auto window = node.engine->status().window;
        return window->aged_records > 5000 && window->records < 5000;
    };
    REQUIRE(eventually(long_gone));
    const CaptureReport report = node.stop();
    const DumpFile dump = read_dump(report.path);
    check_accounts(dump);
    REQUIRE(node.engine->halves(0xc0ffee));
    CHECK(node.engine->halves(0xc0ffee)->size() == 1);
    CHECK(report.processes.size() == 2);
    REQUIRE(dump.footer.lanes.size() == 1);
    CHECK(dump.footer.lanes[0]->lost == lane.header()->dropped.load());
    CHECK(numbers(dump).size() + lane.header()->dropped.load() == number);
}

TEST_CASE("armed: halves that began in the history are told, older ones are not") {
    Node node;
    node.open();
    FakeSegment fake(node.job, {});
    FakeLane& lane = fake.add_lane(1 << 12);
    const auto name = fake.intern("op"), peer = fake.intern("peer");
    REQUIRE(node.sees(1));
    REQUIRE(node.engine->arm(bounds(60 * kSecond)));
    REQUIRE(lane.rpc_begin(name, ticks_now(), 1, false, name, peer, 11));
    REQUIRE(lane.rpc_end(ticks_now(), 1));
    const Nanoseconds middle = node.engine->node_now();
    REQUIRE(lane.rpc_begin(name, ticks_now(), 2, false, name, peer, 12));
    REQUIRE(node.engine->prepare(wanted(kSecond)));
    REQUIRE(node.engine->begin(0xc0ffee, {middle.value + kSecond}));
    REQUIRE(eventually([&] { return node.engine->node_now().value > middle.value + kSecond; }));
    REQUIRE(lane.rpc_end(ticks_now(), 2));
    REQUIRE(lane.rpc_begin(name, ticks_now(), 3, false, name, peer, 13));
    static_cast<void>(node.stop());
    const Halves told = node.engine->halves(0xc0ffee);
    REQUIRE(told);
    const std::vector<Half>& halves = *told;
    REQUIRE(halves.size() == 2);
    CHECK(halves[0].key == 2);
    CHECK(halves[0].ended);
    CHECK(halves[0].peer == "peer");
    CHECK(halves[1].key == 3);
    CHECK_FALSE(halves[1].ended);
}

TEST_CASE("armed: a process that died in the history is in the dump, one that died before is not") {
    Node node;
    node.open();
    auto before = std::make_unique<FakeSegment>(node.job, SegmentSpec{.pid = 101});
    auto within = std::make_unique<FakeSegment>(node.job, SegmentSpec{.pid = 102});
    for (auto* fake : {before.get(), within.get()})
        fake->set_level(schema::SourceId::kApi, schema::SourceLevel::kFull, "");
    FakeLane& lane_before = before->add_lane(1 << 10);
    FakeLane& lane_within = within->add_lane(1 << 10);
    const auto name_before = before->intern("before"), name_within = within->intern("within");
    REQUIRE(node.sees(2));
    REQUIRE(node.engine->arm(bounds(60 * kSecond)));
    REQUIRE(put(lane_before, name_before, 1));
    before->die(false);
    REQUIRE(node.sees(1));
    const Nanoseconds middle = node.engine->node_now();
    REQUIRE(put(lane_within, name_within, 2));
    within->die(false);
    REQUIRE(node.sees(0));
    REQUIRE(node.engine->prepare(wanted(kSecond)));
    REQUIRE(node.engine->begin(0xc0ffee, {middle.value + kSecond}));
    const CaptureReport report = node.stop();
    const DumpFile dump = read_dump(report.path);
    check_accounts(dump);
    REQUIRE(report.processes.size() == 1);
    CHECK(report.processes[0].pid == 102);
    CHECK(report.processes[0].verdict == Verdict::kKilled);
    CHECK(report.processes[0].events == 1);
    REQUIRE(dump.processes.size() == 1);
    CHECK(dump.processes[0].pid == 102);
    CHECK(numbers(dump) == std::vector<std::uint64_t>{2});
    CHECK(dump.footer.processes.at(0)->fate == fbs::Fate::Killed);
}

TEST_CASE("armed: names are announced in each piece, and once in the dump") {
    Node node;
    node.open();
    FakeSegment fake(node.job, {});
    FakeLane& lane = fake.add_lane(1 << 12);
    const auto name = fake.intern("again and again");
    REQUIRE(node.sees(1));
    REQUIRE(node.engine->arm(bounds(60 * kSecond, 1 << 20)));
    std::uint64_t number = 0;
    while (node.engine->status().window->aged_records == 0) put(lane, name, number++);
    const std::size_t pieces = pieces_in(node.job);
    CHECK(pieces > 1);
    const DumpFile dump = read_dump(trace(node, wanted(30 * kSecond)).path);
    check_accounts(dump);
    for (const DumpRecord& record : dump.records) REQUIRE(record.name == "again and again");
}

TEST_CASE("armed: memory stays bounded while threads come and go") {
    Node node;
    node.open();
    FakeSegment fake(node.job, {});
    FakeLane& lane = fake.add_lane(1 << 10);
    const auto name = fake.intern("op");
    REQUIRE(node.sees(1));
    REQUIRE(node.engine->arm(bounds(60 * kSecond)));
    for (std::uint64_t i = 0; i < 200; ++i) {
        REQUIRE(put(lane, name, i));
        const std::uint32_t state = lane.header()->state.load();
        lane.header()->state.store(
            schema::pack_lane_state(schema::LaneState::kReleased, schema::lane_generation(state)),
            std::memory_order_release);
        REQUIRE(eventually([&] {
            return schema::lane_state(lane.header()->state.load()) == schema::LaneState::kFree;
        }));
        const std::uint32_t free = lane.header()->state.load();
        lane.header()->state.store(
            schema::pack_lane_state(schema::LaneState::kUsed, schema::lane_generation(free) + 1),
            std::memory_order_release);
    }
    const DumpFile dump = read_dump(trace(node, wanted(30 * kSecond)).path);
    check_accounts(dump);
    CHECK(numbers(dump).size() == 200);
    CHECK(dump.footer.lanes.size() == 200);
}
