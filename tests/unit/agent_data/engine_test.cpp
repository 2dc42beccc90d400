// The engine over synthetic jobs: what is found, captured, accounted for and said.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <set>
#include <thread>

#include "agent/attach/process_life.hpp"
#include "agent/capture/engine.hpp"
#include "tests/unit/agent_data/dump_file.hpp"
#include "tests/unit/agent_data/fake_job.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;

namespace {

struct Node {
    TemporaryDirectory top;
    std::string job = top.sub("root/job");
    std::unique_ptr<Engine> engine;

    EngineOptions options() {
        EngineOptions options;
        options.root = top.sub("root");
        options.job = "job";
        options.output_root = top.sub("out");
        options.node = "node0";
        return options;
    }
    /// The directories alone, as a shim that comes first makes them.
    void make_directories() {
        REQUIRE(::system(("mkdir -m 700 " + top.sub("root") + " " + job).c_str()) == 0);
    }
    void open() { open(options()); }
    void open(const EngineOptions& options) {
        auto opened = Engine::open(options);
        REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().message));
        engine = std::move(*opened);
    }
    void start() {
        const auto started = engine->capture_from_start(request());
        REQUIRE_MESSAGE(started, (started ? "" : started.error().message));
    }
    static CaptureRequest request(std::uint64_t id = 0xc0ffee) {
        CaptureRequest request;
        request.id = id;
        request.name = "capture";
        return request;
    }
    CaptureReport stop(std::uint64_t id = 0xc0ffee) {
        auto report = engine->stop(id, engine->node_now());
        REQUIRE_MESSAGE(report, (report ? "" : report.error().message));
        return *report;
    }
    bool sees(std::uint32_t processes) {
        return eventually([&] { return engine->status().processes == processes; });
    }
};

/// What a shim's helper thread does: repeats the word once it has acted on it.
class FakeShim {
public:
    FakeShim(const std::string& job, FakeSegment& segment)
        : thread_([this, &job, &segment] {
              const FakeControl control(job);
              while (!quit_) {
                  const std::uint32_t word = control.word();
                  if (segment.header()->attached_word.load() != word) {
                      segment.header()->capture_clock =
                          schema::take_snapshot(schema::TicksSource::kTsc);
                      segment.header()->attached_word.store(word, std::memory_order_release);
                  }
                  std::this_thread::yield();
              }
          }) {}
    ~FakeShim() {
        quit_ = true;
        thread_.join();
    }

private:
    std::atomic<bool> quit_{false};
    std::thread thread_;
};

/// For each lane: written = kept + outside + lost, and kept is what the blocks hold.
void check_accounts(const DumpFile& dump) {
    REQUIRE_MESSAGE(dump.good, dump.fault);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> kept;
    std::uint64_t records = 0, lost = 0;
    for (const auto& lane : dump.footer.lanes) {
        CHECK(lane->written == lane->kept + lane->outside + lane->lost);
        kept[{lane->process, lane->lane}] += lane->kept;
        records += lane->kept;
        lost += lane->lost;
    }
    for (const auto& [id, count] : kept) CHECK(dump.kept(id.first, id.second) == count);
    CHECK(dump.footer.records == records);
    CHECK(dump.footer.lost == lost);
    CHECK(dump.unnamed.empty());
}

}  // namespace

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
    for (int i = 0; i < 5; ++i) lane.range(name, ticks_now(), ticks_now());
    const auto report = node.engine->stop(0xc0ffee, end);
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
    CHECK(report.processes.at(0).verdict == Verdict::kNothingRecorded);
    CHECK(report.processes.at(0).reason == "its shim did not attach in time");
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
    request.pids = {99};
    const auto none = node.engine->prepare(request);
    REQUIRE_FALSE(none);
    CHECK(none.error().code == schema::ErrorCode::kNothingMatched);
    CHECK_FALSE(node.engine->status().capturing);
    request.pids = {2};
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

TEST_CASE("engine: accounts are exact when lanes overrun under it, on several threads at once") {
    Node node;
    node.open();
    node.start();
    FakeSegment fake(node.job, {});
    const auto name = fake.intern("burst");
    constexpr int kThreads = 3;
    constexpr std::uint64_t kEach = 300000;
    std::vector<FakeLane*> lanes;
    for (int i = 0; i < kThreads; ++i) lanes.push_back(&fake.add_lane(256));
    std::vector<std::thread> threads;
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
    const auto halves = node.engine->halves(request.id);
    CHECK(halves.size() == begins.size());
    for (const Half& half : halves) CHECK(begins.contains(half.position));
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
    const auto halves = node.engine->halves(0xc0ffee);
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
    CHECK(node.engine->halves(1).empty());
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
