// The engine and its requests: prepare, begin, stop, what is refused, what waits, and the clock that they speak of.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "tests/unit/agent_data/engine_rig.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;

TEST_CASE("engine: prepare waits for the shims, begin and stop decide what is kept") {
    Node node;
    node.open();
    FakeSegment fake(node.job, {}), plain(node.job, {.pid = 101});
    fake.set_level(schema::SourceId::kTorch, schema::SourceLevel::kOff, "");
    FakeLane& lane = fake.add_lane(1024);
    const auto name = fake.intern("op");
    const FakeShim shim(node.job, fake);
    REQUIRE(node.sees(2));
    const auto prepared = node.engine->prepare(Node::request());
    REQUIRE(prepared);
    CHECK(prepared->processes == 2);
    CHECK(prepared->attached == 1);
    CHECK(prepared->slowest_attach_ns >= 0);
    CHECK(prepared->slowest_attach_ns < 2'000'000'000);
    for (int i = 0; i < 10; ++i) lane.range(name, ticks_now(), ticks_now());
    const Nanoseconds start = node.engine->node_now();
    REQUIRE(node.engine->begin(0xc0ffee, start));
    const std::uint64_t begin_ticks = ticks_now();
    for (int i = 0; i < 20; ++i) lane.range(name, ticks_now(), ticks_now());
    const Nanoseconds end = node.engine->node_now();
    // Once the stop is ordered: what a pass drains before moves the end.
    const FakeControl control(node.job);
    const std::uint64_t later = ticks_now() + (std::uint64_t{1} << 36);
    std::thread after([&] {
        while (control.page().stop_ticks.load() == ~0ull) std::this_thread::yield();
        for (int i = 0; i < 5; ++i) lane.range(name, later, later);
    });
    const auto report = node.engine->stop(0xc0ffee, {end.value + 50'000'000});
    after.join();
    REQUIRE(report);
    const DumpFile dump = read_dump(report->path);
    check_accounts(dump);
    CHECK(report->records == 20);
    REQUIRE(dump.footer.lanes.size() == 1);
    CHECK(dump.footer.lanes[0]->outside == 15);
    CHECK(dump.header.start_ticks <= begin_ticks);
    CHECK(dump.header.start_ticks != 0);
    const std::size_t attached = report->processes[0].attached ? 0 : 1;
    CHECK(report->processes[attached].start_delay_ns >= 0);
    CHECK(report->processes[1 - attached].reason == "no framework loaded");
    CHECK_FALSE(schema::CaptureWord::unpack(FakeControl(node.job).word()).on);
}

TEST_CASE("engine: an order that comes after its instant moves it to what has been drained") {
    Node node;
    node.open();
    FakeSegment fake(node.job, {});
    FakeLane& lane = fake.add_lane(1024);
    const auto name = fake.intern("op");
    REQUIRE(node.sees(1));
    REQUIRE(node.engine->prepare(Node::request()));
    const auto drained = [&] {
        return eventually(
            [&] { return lane.header()->tail.load() == lane.header()->committed.load(); });
    };
    const Nanoseconds start = node.engine->node_now();
    const std::uint64_t before = ticks_now();
    lane.range(name, before, before);
    REQUIRE(drained());
    REQUIRE(node.engine->begin(0xc0ffee, start));
    const Nanoseconds stop = node.engine->node_now();
    const std::uint64_t after = ticks_now();
    lane.range(name, after, after);
    REQUIRE(drained());
    const auto report = node.engine->stop(0xc0ffee, stop);
    REQUIRE(report);
    // Gone is what lies before the start, kept what lies before the stop.
    CHECK(report->records == 1);
    CHECK(report->start_ticks > before);
    CHECK(report->start_ticks <= after);
    CHECK(report->stop_ticks >= after);
    check_accounts(read_dump(report->path));
}

TEST_CASE("engine: a shim that never attaches is waited for no longer than asked, and said") {
    Node node;
    node.open();
    FakeSegment fake(node.job, {});
    fake.set_level(schema::SourceId::kTorch, schema::SourceLevel::kOff, "");
    REQUIRE(node.sees(1));
    CaptureRequest request = Node::request();
    request.attach_timeout = {30'000'000};
    const auto prepared = node.engine->prepare(request);
    REQUIRE(prepared);
    CHECK(prepared->attached == 0);
    REQUIRE(node.engine->begin(request.id, node.engine->node_now()));
    const CaptureReport report = node.stop();
    CHECK(report.processes.at(0).verdict == Verdict::kHung);
    CHECK(report.processes.at(0).reason == "it did not attach within 0.03 s");
}

TEST_CASE(
    "engine: one capture at a time; the same request is answered again; an unknown one is not") {
    Node node;
    node.open();
    REQUIRE(node.engine->prepare(Node::request(1)));
    REQUIRE(node.engine->prepare(Node::request(1)));
    const auto other = node.engine->prepare(Node::request(2));
    REQUIRE_FALSE(other);
    CHECK(other.error().code == schema::ErrorCode::kRefused);
    CHECK(other.error().message.find("capture 0000000000000001 runs there") != std::string::npos);
    CHECK_FALSE(node.engine->begin(2, {0}));
    CHECK_FALSE(node.engine->stop(2, {0}));
    REQUIRE(node.engine->begin(1, node.engine->node_now()));
    const CaptureReport report = node.stop(1);
    const auto again = node.engine->stop(1, {0});
    REQUIRE(again);
    CHECK(again->path == report.path);
}

TEST_CASE("engine: pids choose processes; where none is there nothing is started") {
    Node node;
    node.open();
    FakeSegment one(node.job, {.pid = 1}), two(node.job, {.pid = 2});
    FakeLane &first = one.add_lane(64), &second = two.add_lane(64);
    REQUIRE(node.sees(2));
    CaptureRequest request = Node::request();
    request.selection.pids = {99};
    const auto none = node.engine->prepare(request);
    REQUIRE_FALSE(none);
    CHECK(none.error().code == schema::ErrorCode::kNothingMatched);
    CHECK_FALSE(node.engine->status().capturing);
    request.selection.pids = {2};
    REQUIRE(node.engine->prepare(request));
    CHECK(schema::CaptureWord::unpack(FakeControl(node.job).word()).selected_only);
    CHECK(one.header()->selected.load() == 0);
    CHECK(two.header()->selected.load() == 1);
    REQUIRE(node.engine->begin(request.id, {0}));
    first.range(0, ticks_now(), ticks_now());
    second.range(0, ticks_now(), ticks_now());
    const CaptureReport report = node.stop();
    REQUIRE(report.processes.size() == 1);
    CHECK(report.processes[0].pid == 2);
    CHECK(report.records == 1);
    CHECK(two.header()->selected.load() == 0);
}

TEST_CASE("engine: a stop in the future waits for its instant, and others are answered meanwhile") {
    Node node;
    node.open();
    node.start();
    const Nanoseconds end{node.engine->node_now().value + 60'000'000};
    std::atomic<bool> done{false};
    std::thread stopper([&] {
        CHECK(node.engine->stop(0xc0ffee, end));
        CHECK(node.engine->node_now() >= end);
        done = true;
    });
    int answers = 0;
    while (!done) answers += node.engine->status().processes == 0 ? 1 : 0;
    stopper.join();
    CHECK(answers > 0);
    CHECK_FALSE(node.engine->status().capturing);
}

TEST_CASE(
    "engine: a second one on the directory is refused; a skew moves its clock and nothing else") {
    Node node;
    EngineOptions options = node.options();
    options.skew_offset_ns = 1'000'000'000;
    options.skew_drift_ppb = 50'000;
    node.open(options);
    CHECK_FALSE(Engine::open(options));
    const std::int64_t real = schema::read_clock(CLOCK_REALTIME).value;
    const std::int64_t ahead = node.engine->node_now().value - real;
    CHECK(ahead > 990'000'000);
    CHECK(ahead < 1'010'000'000);
    const Calibration& clock = node.engine->calibration();
    const std::uint64_t later =
        clock.reference_ticks + static_cast<std::uint64_t>(clock.ticks_per_second);
    CHECK(clock.node_ns({later}).value - clock.reference_ns == doctest::Approx(1e9).epsilon(1e-6));
    CHECK(clock.ticks_at(clock.node_ns({later})).value == doctest::Approx(double(later)));
}
