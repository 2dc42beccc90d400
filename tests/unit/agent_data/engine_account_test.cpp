// What the engine says of a capture adds up: overruns, the bound of the dump, halves and the records that they stand for.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

#include "tests/unit/agent_data/engine_rig.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;

TEST_CASE("engine: accounts are exact when lanes overrun under it, on several threads at once") {
    Node node;
    node.open();
    node.start();
    FakeSegment fake(node.job, {});
    const auto name = fake.intern("burst");
    constexpr int kThreads = 3;
    constexpr std::uint64_t kEach = 300000;
    std::vector<FakeLane*> lanes;
    lanes.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i) lanes.push_back(&fake.add_lane(256));
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (FakeLane* lane : lanes) {
        threads.emplace_back([lane, name] {
            for (std::uint64_t i = 0; i < kEach; ++i) lane->range(name, ticks_now(), ticks_now());
        });
    }
    for (std::thread& thread : threads) thread.join();
    REQUIRE(node.sees(1));
    const CaptureReport report = node.stop();
    const DumpFile dump = read_dump(report.path);
    check_accounts(dump);
    REQUIRE(dump.footer.lanes.size() == kThreads);
    for (const auto& lane : dump.footer.lanes) {
        CHECK(lane->written == kEach);
        CHECK(lane->lost == lanes[lane->lane]->header()->dropped.load());
        CHECK(lane->kept == lanes[lane->lane]->header()->records.load());
    }
    CHECK(dump.footer.processes.at(0)->violations == 0);
    CHECK(report.lost > 0);
}

TEST_CASE("engine: the receipt has the lanes' records, the processes' time, the slowest start") {
    Node node;
    node.open();
    FakeSegment quick(node.job, {.pid = 100}), slow(node.job, {.pid = 101});
    FakeLane& lane = quick.add_lane(16);
    const auto name = quick.intern("op");
    const FakeShim shim(node.job, quick), other(node.job, slow);
    REQUIRE(node.sees(2));
    REQUIRE(node.engine->prepare(Node::request()));
    REQUIRE(eventually([&] {
        const auto all = node.engine->processes();
        return std::all_of(all.begin(), all.end(), [](const auto& one) { return one.attached; });
    }));
    REQUIRE(node.engine->begin(Node::request().id, node.engine->node_now()));
    for (int i = 0; i < 100; ++i) lane.range(name, ticks_now(), ticks_now());
    const CaptureReport report = node.stop();
    const DumpFile dump = read_dump(report.path);
    check_accounts(dump);
    REQUIRE(dump.footer.perturbation != nullptr);
    const fbs::PerturbationT& cost = *dump.footer.perturbation;
    CHECK(cost.records == dump.footer.records + dump.footer.lost);
    CHECK(cost.cost_ns == static_cast<std::uint64_t>(static_cast<double>(cost.records) *
                                                     dump.footer.record_cost_ns));
    const auto capture_ns =
        static_cast<double>(report.calibration.node_ns({dump.footer.stop_ticks}).value -
                            report.calibration.node_ns({dump.footer.start_ticks}).value);
    CHECK(static_cast<double>(cost.job_time_ns) == doctest::Approx(2 * capture_ns));
    std::int64_t slowest = -1;
    for (const auto& end : dump.footer.processes) slowest = std::max(slowest, end->start_delay_ns);
    CHECK(slowest >= 0);
    CHECK(cost.slowest_start_ns == slowest);
    CHECK(cost.agent_cpu_ns > 0);
    CHECK(report.perturbation.agent_cpu_ns == cost.agent_cpu_ns);
}

TEST_CASE("engine: beyond max_bytes records are lost, counted and said, and the dump is whole") {
    Node node;
    node.open();
    CaptureRequest request = Node::request();
    request.max_bytes = 100000;
    REQUIRE(node.engine->capture_from_start(request));
    FakeSegment fake(node.job, {});
    FakeLane& lane = fake.add_lane(32768);
    const auto name = fake.intern("op"), peer = fake.intern("peer");
    REQUIRE(node.sees(1));
    std::uint64_t written = 0, dropped = 0;
    for (std::uint64_t key = 1; key <= 60000; ++key) {
        for (const bool ok :
             {lane.rpc_begin(name, ticks_now(), key, false, name, peer, key * 0x9e3779b97f4a7c15),
              lane.rpc_end(ticks_now(), key)}) {
            ++written;
            dropped += ok ? 0 : 1;
        }
        if (key % 4096 == 0) {
            REQUIRE(eventually(
                [&] { return lane.header()->tail.load() == lane.header()->committed.load(); }));
        }
    }
    const CaptureReport report = node.stop();
    CHECK_FALSE(report.complete);
    CHECK(report.error.find("100000 bytes is reached") != std::string::npos);
    CHECK(report.bytes <= 100000);
    const DumpFile dump = read_dump(report.path);
    check_accounts(dump);
    CHECK(dump.footer.lanes.at(0)->written == written);
    CHECK(dump.footer.lanes.at(0)->lost > dropped);
    // No half without its record.
    std::set<std::uint64_t> begins;
    for (const DumpRecord& record : dump.records) {
        if (record.header.kind == schema::RecordKind::kRpcBegin) begins.insert(record.position);
    }
    const Halves halves = node.engine->halves(request.id);
    REQUIRE(halves);
    CHECK(halves->size() == begins.size());
    for (const Half& half : *halves) CHECK(begins.contains(half.position));
}

TEST_CASE("engine: halves come with names, ends and the positions of their records") {
    Node node;
    node.open();
    node.start();
    FakeSegment fake(node.job, {});
    FakeLane& lane = fake.add_lane(64);
    const auto w0 = fake.intern("worker0"), w1 = fake.intern("worker1"), f = fake.intern("f");
    lane.range(f, ticks_now(), ticks_now());
    lane.rpc_begin(f, ticks_now(), 1, false, w0, w1, 42);
    lane.rpc_begin(f, ticks_now(), 2, true, w0, w1, 43);
    lane.rpc_end(ticks_now(), 1);
    REQUIRE(node.sees(1));
    const CaptureReport report = node.stop();
    const Halves told = node.engine->halves(0xc0ffee);
    REQUIRE(told);
    const std::vector<Half>& halves = *told;
    REQUIRE(halves.size() == 2);
    CHECK(halves[0].self == "worker0");
    CHECK(halves[0].peer == "worker1");
    CHECK(halves[0].ended);
    CHECK(halves[0].position == 1);
    CHECK_FALSE(halves[0].server);
    CHECK(halves[1].server);
    CHECK_FALSE(halves[1].ended);
    CHECK(halves[1].position == 4);
    CHECK(report.processes.at(0).workers == std::vector<std::string>{"worker0"});
    CHECK_FALSE(node.engine->halves(1));
    // Until the next capture has ended: who asks late is told.
    CaptureRequest next = Node::request(2);
    next.name = "next";
    REQUIRE(node.engine->capture_from_start(next));
    REQUIRE(node.engine->halves(0xc0ffee));
    CHECK(node.engine->halves(0xc0ffee)->size() == 2);
    static_cast<void>(node.stop(2));
    CHECK_FALSE(node.engine->halves(0xc0ffee));
    CHECK(node.engine->halves(2)->empty());
}

TEST_CASE(
    "engine: what hooks pass over is lost in the capture in which it happened, and in no other") {
    Node node;
    node.open();
    FakeSegment fake(node.job, {});
    FakeLane& lane = fake.add_lane(256);
    const auto name = fake.intern("op");
    const auto pass_over = [&](schema::Loss loss, std::uint64_t times) {
        fake.header()->losses[static_cast<std::uint32_t>(loss)].fetch_add(times);
    };
    pass_over(schema::Loss::kLaneRefused, 7);
    REQUIRE(node.sees(1));
    REQUIRE(node.engine->prepare(Node::request()));
    REQUIRE(node.engine->begin(Node::request().id, node.engine->node_now()));
    lane.range(name, ticks_now(), ticks_now());
    pass_over(schema::Loss::kLaneRefused, 3);
    pass_over(schema::Loss::kTableFull, 2);
    pass_over(schema::Loss::kNamesFull, 1);  // said, but the record was written
    pass_over(schema::Loss::kAttributesLost, 12);
    const CaptureReport first = node.stop();
    CHECK(first.lost == 5);
    CHECK(first.processes.at(0).reason ==
          "its table of names was full: 12 input shapes, labels or peers of records are unknown "
          "(shown as ?)");
    CHECK(first.records == 1);
    const DumpFile dump = read_dump(first.path);
    const auto& losses = dump.footer.processes.at(0)->losses;
    CHECK(losses.at(static_cast<std::uint32_t>(schema::Loss::kLaneRefused)) == 3);
    CHECK(losses.at(static_cast<std::uint32_t>(schema::Loss::kNamesFull)) == 1);
    CaptureRequest another = Node::request(2);
    another.name = "another";
    REQUIRE(node.engine->prepare(another));
    REQUIRE(node.engine->begin(2, node.engine->node_now()));
    CHECK(node.stop(2).lost == 0);
}
