// The engine and its processes: found before it or during a capture, killed, ended, left behind, refused.
#include <doctest/doctest.h>

#include <unistd.h>
#include <filesystem>

#include "agent/attach/process_life.hpp"
#include "tests/unit/agent_data/engine_rig.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;

TEST_CASE("engine: segments that were there before it are found and captured") {
    Node node;
    node.make_directories();
    FakeSegment one(node.job, {.pid = 1}), two(node.job, {.pid = 2});
    FakeLane& lane = one.add_lane(1024);
    const auto name = one.intern("aten::add");
    const auto worker = one.intern("worker0");
    one.header()->worker_name.store(worker);
    one.header()->worker_id.store(4);
    one.set_level(schema::SourceId::kTorch, schema::SourceLevel::kDegraded, "no Python");
    node.open();
    CHECK(node.engine->status().processes == 2);
    node.start();
    for (std::uint64_t i = 0; i < 100; ++i) lane.range(name, ticks_now(), ticks_now());
    const CaptureReport report = node.stop();
    CHECK(report.complete);
    CHECK(report.records == 100);
    CHECK(report.lost == 0);
    REQUIRE(report.processes.size() == 2);
    const DumpFile dump = read_dump(report.path);
    check_accounts(dump);
    CHECK(dump.records.size() == 100);
    CHECK(dump.records[0].name == "aten::add");
    CHECK(dump.header.node == "node0");
    CHECK(dump.header.job == "job");
    CHECK(dump.header.start_ticks == 0);
    CHECK(dump.header.capture_id == 0xc0ffee);
    CHECK_FALSE(dump.header.boot_id.empty());
    CHECK(dump.header.calibration->ticks_per_second > 1e8);
    CHECK(dump.footer.record_cost_ns > 0);
    const std::size_t first = dump.processes[0].pid == 1 ? 0 : 1;
    const auto& process = dump.processes[first];
    CHECK(process.executable == "/usr/bin/fake");
    CHECK(process.command_line == std::vector<std::string>{"fake", "--option"});
    CHECK(process.worker_name == "worker0");
    CHECK(process.worker_id == 4);
    CHECK(process.rank == 3);
    REQUIRE(process.sources.size() == 1);
    CHECK(process.sources[0]->reason == "no Python");
    CHECK(report.processes[first].verdict == Verdict::kCaptured);
    CHECK(report.processes[first].worker_name == "worker0");
    CHECK(report.processes[1 - first].verdict == Verdict::kNothingRecorded);
    CHECK(report.processes[1 - first].reason == "no framework loaded");
}

TEST_CASE("engine: nobody waits for sources that act alone; silent ones have been captured") {
    Node node;
    node.make_directories();
    FakeSegment silent(node.job, {.pid = 1}), busy(node.job, {.pid = 2});
    silent.set_level(schema::SourceId::kApi, schema::SourceLevel::kFull, "");
    busy.set_level(schema::SourceId::kNvtx, schema::SourceLevel::kFull, "");
    FakeLane& lane = busy.add_lane(64);
    node.open();
    // Waiting for them, the test would be ended by its own time limit.
    CaptureRequest request = Node::request();
    request.attach_timeout = {600'000'000'000};
    const auto prepared = node.engine->prepare(request);
    REQUIRE(prepared);
    CHECK(prepared->processes == 2);
    CHECK(prepared->slowest_attach_ns == 0);
    REQUIRE(node.engine->begin(0xc0ffee, node.engine->node_now()));
    lane.range(busy.intern("a"), ticks_now(), ticks_now());
    const CaptureReport report = node.stop();
    REQUIRE(report.processes.size() == 2);
    CHECK(report.processes[0].verdict == Verdict::kCaptured);
    CHECK(report.processes[1].verdict == Verdict::kCaptured);
    CHECK(report.records == 1);
}

TEST_CASE("engine: a process that comes during a capture is in it from its first record") {
    Node node;
    node.open();
    node.start();
    FakeSegment fake(node.job, {});
    fake.add_lane(64).range(fake.intern("first"), ticks_now(), ticks_now());
    REQUIRE(node.sees(1));
    const CaptureReport report = node.stop();
    const DumpFile dump = read_dump(report.path);
    check_accounts(dump);
    REQUIRE(dump.records.size() == 1);
    CHECK(dump.records[0].name == "first");
}

TEST_CASE(
    "engine: of a killed process the committed records and the open ranges are in the dump, a torn "
    "record is not") {
    Node node;
    node.open();
    node.start();
    const std::uint32_t parent = static_cast<std::uint32_t>(::getpid());
    Child child([&] {
        auto* fake = new FakeSegment(node.job, {.pid_namespace = own_pid_namespace(),
                                                .pid = static_cast<std::uint32_t>(::getpid())});
        FakeLane& lane = fake->add_lane(1024);
        const auto done = fake->intern("done"), open = fake->intern("open");
        for (int i = 0; i < 500; ++i) lane.range(done, ticks_now(), ticks_now());
        lane.push_open(open, ticks_now());
        lane.writer().reserve(1)->words[0] = ~0ull;
    });
    CHECK(parent != static_cast<std::uint32_t>(child.pid()));
    REQUIRE(node.sees(1));
    CHECK_FALSE(node.engine->all_ended());
    const pid_t pid = child.pid();
    child.kill();
    CHECK(eventually([&] { return node.engine->all_ended(); }));
    CHECK_FALSE(exists(node.job + "/" + std::to_string(own_pid_namespace()) + "." +
                       std::to_string(pid) + ".1"));
    const CaptureReport report = node.stop();
    REQUIRE(report.processes.size() == 1);
    CHECK(report.processes[0].verdict == Verdict::kKilled);
    CHECK(report.processes[0].fate == Fate::kKilled);
    CHECK(report.processes[0].end_ticks != 0);
    const DumpFile dump = read_dump(report.path);
    check_accounts(dump);
    CHECK(dump.records.size() == 500);
    CHECK(dump.footer.processes.at(0)->fate == fbs::Fate::Killed);
    const auto& open = dump.open.at({0, 0});
    REQUIRE(open.size() == 1);
    CHECK(dump.names.at({0, static_cast<std::uint32_t>(open[0].what() >> 32)}) == "open");
}

TEST_CASE("engine: a process that ended in good order is an exit, and its segment goes") {
    Node node;
    node.open();
    node.start();
    FakeSegment fake(node.job, {});
    fake.add_lane(64).range(fake.intern("x"), ticks_now(), ticks_now());
    REQUIRE(node.sees(1));
    fake.die(true);
    CHECK(eventually([&] { return node.engine->all_ended(); }));
    CHECK_FALSE(exists(fake.path()));
    const CaptureReport report = node.stop();
    REQUIRE(report.processes.size() == 1);
    CHECK(report.processes[0].verdict == Verdict::kExited);
    CHECK(report.records == 1);
}

TEST_CASE(
    "engine: what the dead left behind is kept for a capture from the start, and taken by it") {
    Node node;
    node.make_directories();
    {
        FakeSegment fake(node.job, {});
        FakeLane& lane = fake.add_lane(64);
        const auto name = fake.intern("left");
        for (int i = 0; i < 10; ++i) lane.range(name, ticks_now(), ticks_now());
        fake.die(false);
    }
    FakeSegment clean(node.job, {.pid = 101});
    clean.die(false);
    node.open();
    const std::string left = node.job + "/7.100.1";
    CHECK(eventually([&] { return !exists(clean.path()); }));
    CHECK(exists(left));
    node.start();
    CHECK_FALSE(exists(left));
    const CaptureReport report = node.stop();
    CHECK(report.records == 10);
    REQUIRE(report.processes.size() == 1);
    CHECK(report.processes[0].verdict == Verdict::kKilled);
    check_accounts(read_dump(report.path));
}

TEST_CASE(
    "engine: of a process that came and ended between two looks, in no capture, nothing stays") {
    Node node;
    node.open();
    node.start();
    node.stop();
    TemporaryDirectory elsewhere;
    FakeSegment fake(elsewhere.path(), {});
    FakeLane& lane = fake.add_lane(64);
    REQUIRE(lane.range(fake.intern("late"), ticks_now(), ticks_now()));
    fake.die(false);
    std::filesystem::copy(fake.path(), node.top.sub("root/part"));
    std::filesystem::rename(node.top.sub("root/part"), node.job + "/7.100.1");
    CHECK(eventually([&] { return !exists(node.job + "/7.100.1"); }));
}

TEST_CASE(
    "engine: a process that came and ended between two looks is in the capture, with what it "
    "dropped") {
    Node node;
    node.open();
    node.start();
    TemporaryDirectory elsewhere;
    FakeSegment fake(elsewhere.path(), {});
    FakeLane& lane = fake.add_lane(64);
    const auto name = fake.intern("short");
    std::uint64_t dropped = 0;
    for (int i = 0; i < 100; ++i) dropped += lane.range(name, ticks_now(), ticks_now()) ? 0 : 1;
    REQUIRE(dropped > 0);
    fake.die(false);
    std::filesystem::copy(fake.path(), node.top.sub("root/part"));
    std::filesystem::rename(node.top.sub("root/part"), node.job + "/7.100.1");
    REQUIRE(eventually([&] { return !exists(node.job + "/7.100.1"); }));
    const CaptureReport report = node.stop();
    CHECK(report.records == 100 - dropped);
    CHECK(report.lost == dropped);
    check_accounts(read_dump(report.path));
}

TEST_CASE("engine: a segment truncated during a capture breaks nothing else") {
    Node node;
    node.open();
    node.start();
    FakeSegment bad(node.job, {.pid = 1}), good(node.job, {.pid = 2});
    FakeLane &broken = bad.add_lane(1024), &whole = good.add_lane(1024);
    REQUIRE(node.sees(2));
    broken.range(0, ticks_now(), ticks_now());
    REQUIRE(eventually([&] { return broken.header()->tail.load() == 1; }));
    REQUIRE(::truncate(bad.path().c_str(), 0) == 0);
    whole.range(0, ticks_now(), ticks_now());
    REQUIRE(eventually([&] { return whole.header()->tail.load() == 1; }));
    const CaptureReport report = node.stop();
    CHECK(report.records == 2);
    const DumpFile dump = read_dump(report.path);
    check_accounts(dump);
    std::uint64_t violations = 0;
    for (const auto& process : dump.footer.processes) violations += process->violations;
    CHECK(violations > 0);
}

TEST_CASE("engine: a segment that can't be read is a refused process with the reason") {
    Node node;
    node.make_directories();
    FakeSegment fake(node.job, {});
    fake.header()->layout = 9;
    node.open();
    node.start();
    const CaptureReport report = node.stop();
    REQUIRE(report.processes.size() == 1);
    CHECK(report.processes[0].verdict == Verdict::kRefused);
    CHECK(report.processes[0].pid == 100);
    CHECK(report.processes[0].reason.find("layout 9") != std::string::npos);
}
