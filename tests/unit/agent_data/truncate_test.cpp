// Segments that are truncated under the agent, as ftruncate() on a live one does: the agent lives, the others' records are whole, and
// what is lost is said.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <random>
#include <thread>
#include <vector>

#include "agent/attach/file_handle.hpp"
#include "agent/attach/sigbus_guard.hpp"
#include "agent/drain/process_drainer.hpp"
#include "tests/unit/agent_data/engine_rig.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;

namespace {

constexpr auto kFirstLane = static_cast<off_t>(schema::kLanesOffset);
constexpr auto kFirstCells = static_cast<off_t>(schema::kLanesOffset + schema::kPageBytes);

const ProcessReport* report_of(const std::vector<ProcessReport>& reports, int pid) {
    for (const ProcessReport& report : reports) {
        if (report.pid == pid) return &report;
    }
    return nullptr;
}

bool says_truncated(const ProcessReport* report) {
    return report != nullptr && report->verdict == Verdict::kRefused &&
           report->reason.find("was truncated to ") != std::string::npos;
}

/// A process that floods its lane, until a page of it is gone or somebody kills it.
Child victim(const std::string& job, std::uint32_t pid) {
    return Child([&] {
        auto* segment = new FakeSegment(job, {.pid = pid, .bytes = 2ull << 20});
        FakeLane* lane = &segment->add_lane(1024);
        const std::uint32_t name = segment->intern("flood");
        std::thread([lane, name] {
            for (;;) lane->range(name, ticks_now(), ticks_now());
        }).detach();
    });
}

}  // namespace

TEST_CASE("engine: a live segment that is truncated is said so in status, verdict and dump") {
    Node node;
    node.open();
    node.start();
    FakeSegment good(node.job, {.pid = 100});
    FakeSegment bad(node.job, {.pid = 101});
    FakeLane& good_lane = good.add_lane(256);
    FakeLane& bad_lane = bad.add_lane(256);
    const std::uint32_t name = good.intern("op");
    bad.intern("op");
    for (int i = 0; i < 10; ++i) {
        good_lane.range(name, ticks_now(), ticks_now());
        bad_lane.range(name, ticks_now(), ticks_now());
    }
    const auto drained = [](FakeLane& lane) {
        return lane.header()->tail.load() == lane.header()->committed.load();
    };
    REQUIRE(eventually([&] { return drained(good_lane) && drained(bad_lane); }));
    off_t bytes = 0;
    SUBCASE("to nothing") {
        bytes = 0;
    }
    SUBCASE("to its header") {
        bytes = schema::kPageBytes;
    }
    SUBCASE("to its tables") {
        bytes = kFirstLane;
    }
    SUBCASE("within a lane") {
        bytes = kFirstCells;
    }
    REQUIRE(::truncate(bad.path().c_str(), bytes) == 0);
    CHECK(eventually([&] { return says_truncated(report_of(node.engine->processes(), 101)); }));
    for (int i = 0; i < 10; ++i) good_lane.range(name, ticks_now(), ticks_now());
    REQUIRE(eventually([&] { return drained(good_lane); }));
    const CaptureReport report = node.stop();
    CHECK(says_truncated(report_of(report.processes, 101)));
    CHECK(report_of(report.processes, 101)->events == 10);
    CHECK(report_of(report.processes, 100)->verdict == Verdict::kCaptured);
    CHECK(report_of(report.processes, 100)->events == 20);
    const DumpFile dump = read_dump(report.path);
    check_accounts(dump);
    CHECK(dump.footer.lost == 0);
}

TEST_CASE("engine: nobody waits for the attach of a process whose segment was truncated") {
    Node node;
    node.open();
    FakeSegment bad(node.job, {});
    bad.set_level(schema::SourceId::kTorch, schema::SourceLevel::kOff, "");
    REQUIRE(node.sees(1));
    REQUIRE(::truncate(bad.path().c_str(), 0) == 0);
    CaptureRequest request = Node::request();
    request.attach_timeout = Nanoseconds{60'000'000'000};
    const auto before = std::chrono::steady_clock::now();
    REQUIRE(node.engine->prepare(request));
    CHECK(std::chrono::steady_clock::now() - before < std::chrono::seconds(30));
    CHECK(says_truncated(report_of(node.stop().processes, 100)));
}

TEST_CASE("lane: what it said it wrote before its cells were cut off is lost, and counted") {
    TemporaryDirectory directory;
    FakeSegment fake(directory.path(), {});
    FakeLane& lane = fake.add_lane(1024);
    const FileHandle handle(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    auto segment = MappedSegment::open(handle.get(), directory.path(), {kForeignNamespace, 100, 1});
    REQUIRE(segment);
    ProcessDrainer drainer(**segment);
    const auto buffers = std::make_unique<DrainBuffers>();
    constexpr TickRange kAll{0, ~0ull};
    drainer.start(0);
    for (std::uint64_t i = 0; i < 100; ++i) lane.range(0, i, i + 1);
    drainer.drain(*buffers, kAll, ticks_now(), true);
    for (std::uint64_t i = 0; i < 7; ++i) lane.range(0, i, i + 1);
    REQUIRE(::truncate(fake.path().c_str(), kFirstCells) == 0);
    drainer.drain(*buffers, kAll, ticks_now(), true);
    drainer.seal(*buffers, kAll, ticks_now(), true);
    drainer.settle_all(*buffers, true, ticks_now());
    CHECK((*segment)->broken());
    CHECK(drainer.kept() == 100);
    CHECK(drainer.lost() == 7);
}

TEST_CASE("engine: live segments are truncated while it drains, and it goes on with the others") {
    const std::uint32_t seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    Node node;
    node.open();
    node.start();
    constexpr int kVictims = 40;
    constexpr std::uint64_t kRecords = 100000;
    FakeSegment good(node.job, {.pid = 1});
    FakeLane& lane = good.add_lane(4096);
    const std::uint32_t name = good.intern("op");
    std::thread writer([&] {
        // Waits for room instead of dropping: whatever is missing in the end, the agent has lost.
        for (std::uint64_t i = 0; i < kRecords; ++i) {
            while (lane.header()->committed.load() - lane.header()->tail.load() > 4000)
                std::this_thread::yield();
            lane.range(name, ticks_now(), i);
        }
    });
    for (int i = 0; i < kVictims; ++i) {
        const auto pid = static_cast<std::uint32_t>(1000 + i);
        Child child = victim(node.job, pid);
        const std::string path = node.job + "/7." + std::to_string(pid) + ".1";
        REQUIRE(eventually([&] { return report_of(node.engine->processes(), 1000 + i); }));
        static constexpr off_t kEdges[] = {0, 1, schema::kPageBytes, kFirstLane, kFirstLane + 64};
        // By its descriptor: the agent may have removed the file between the two.
        const FileHandle file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
        const off_t size = random() % 2 == 0 ? kEdges[random() % std::size(kEdges)]
                                             : static_cast<off_t>(random() % kFirstCells);
        REQUIRE(::ftruncate(file.get(), size) == 0);
        // Half of them are long again before anybody has looked twice, with nothing but zeros.
        if (random() % 2 == 0) REQUIRE(::ftruncate(file.get(), 2 << 20) == 0);
        child.kill();
    }
    writer.join();
    const CaptureReport report = node.stop();
    const DumpFile dump = read_dump(report.path);
    check_accounts(dump);
    const ProcessReport* whole = report_of(report.processes, 1);
    REQUIRE(whole != nullptr);
    CHECK(whole->events == kRecords);
    CHECK(whole->lost == 0);
    CHECK(whole->verdict == Verdict::kCaptured);
    CHECK(report.processes.size() == kVictims + 1);
    for (int i = 0; i < kVictims; ++i)
        CHECK(report_of(report.processes, 1000 + i)->verdict != Verdict::kCaptured);
}
