// After an agent that died: an engine that goes away without a stop leaves what a killed one leaves (its note, its partial dump, lanes
// with what no file has), and the next one on the directory ends that.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "agent/capture/capture_note.hpp"
#include "agent/window/piece_file.hpp"
#include "schema/frame.hpp"
#include "tests/unit/agent_data/engine_rig.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;

namespace {

struct Left : Node {
    std::string dump = top.sub("out/capture/node0.rsd");
    std::string partial = dump + ".partial";

    void write(FakeLane& lane, int count) {
        for (int i = 0; i < count; ++i) lane.range(0, ticks_now(), ticks_now());
    }
    bool has_written(std::uint64_t events) {
        return eventually([&] { return engine->status().events == events; });
    }
    CaptureReport must_recover() {
        open();
        const auto recovered = engine->recovered();
        REQUIRE(recovered);
        CHECK_FALSE(read_note(job));
        CHECK_FALSE(exists(partial));
        CHECK(engine->status().recovered.find(dump) != std::string::npos);
        return *recovered;
    }
};

/// As often as it is, each position of each lane.
std::set<std::pair<std::uint32_t, std::uint64_t>> positions_of(const DumpFile& dump) {
    std::set<std::pair<std::uint32_t, std::uint64_t>> positions;
    for (const DumpRecord& record : dump.records)
        CHECK(positions.emplace(record.lane, record.position).second);
    return positions;
}

}  // namespace

TEST_CASE(
    "engine: the next one ends the capture of one that died; nothing is lost, nothing twice") {
    Left node;
    node.open();
    node.start();
    FakeSegment fake(node.job, {});
    FakeLane& lane = fake.add_lane(1024);
    node.write(lane, 100);
    REQUIRE(node.has_written(100));
    node.write(lane, 50);
    REQUIRE(read_note(node.job));
    node.engine.reset();
    node.write(lane, 10);
    SUBCASE("its last chunk was not written whole") {
        std::ofstream(node.partial, std::ios::app | std::ios::binary) << "RSDFxxxxxxxxx";
    }
    SUBCASE("its file is whole") {}
    SUBCASE("the process has died, too") {
        fake.die(false);
    }
    const CaptureReport report = node.must_recover();
    CHECK(report.complete);
    CHECK(report.records == 160);
    CHECK(report.lost == 0);
    const DumpFile dump = read_dump(node.dump);
    check_accounts(dump);
    CHECK(positions_of(dump).size() == 160);
    REQUIRE(dump.footer.processes.size() == 1);
}

TEST_CASE("engine: what a lane dropped between two agents is lost, and counted once") {
    Left node;
    node.open();
    node.start();
    FakeSegment fake(node.job, {});
    FakeLane& lane = fake.add_lane(64);
    node.write(lane, 10);
    REQUIRE(node.has_written(10));
    node.engine.reset();
    node.write(lane, 100);
    const auto dropped = lane.header()->dropped.load();
    REQUIRE(dropped > 30);
    const CaptureReport report = node.must_recover();
    CHECK(report.lost == dropped);
    CHECK(report.records == 110 - dropped);
    check_accounts(read_dump(node.dump));
}

TEST_CASE("engine: a process that ended under the agent that died is in the dump with its end") {
    Left node;
    node.open();
    node.start();
    {
        FakeSegment fake(node.job, {});
        node.write(fake.add_lane(64), 20);
        REQUIRE(node.sees(1));
        fake.die(true);
        REQUIRE(eventually([&] { return !exists(fake.path()); }));
    }
    node.engine.reset();
    const CaptureReport report = node.must_recover();
    REQUIRE(report.processes.size() == 1);
    CHECK(report.processes[0].fate == Fate::kExited);
    CHECK(report.processes[0].events == 20);
    const DumpFile dump = read_dump(node.dump);
    check_accounts(dump);
    REQUIRE(dump.footer.processes.size() == 1);
    CHECK(dump.footer.processes[0]->fate == fbs::Fate::Exited);
    CHECK(dump.records.size() == 20);
}

TEST_CASE("engine: a capture that had its footer gets its name, one that had that keeps it") {
    Left node;
    node.open();
    node.start();
    const auto note = read_note(node.job);
    REQUIRE(note);
    const CaptureReport before = node.stop();
    node.engine.reset();
    SUBCASE("it died before the rename") {
        std::filesystem::rename(node.dump, node.partial);
    }
    SUBCASE("it died after the rename") {}
    REQUIRE(write_note(node.job, *note));
    node.open();
    CHECK_FALSE(node.engine->recovered());
    CHECK(node.engine->status().recovered.find(node.dump) != std::string::npos);
    CHECK_FALSE(read_note(node.job));
    CHECK_FALSE(exists(node.partial));
    const DumpFile dump = read_dump(node.dump);
    CHECK_MESSAGE(dump.good, dump.fault);
    CHECK(std::filesystem::file_size(node.dump) == before.bytes);
}

TEST_CASE("engine: another capture's partial dump is left as it is, and that is said") {
    Left node;
    node.open();
    node.start();
    node.engine.reset();
    auto note = read_note(node.job);
    REQUIRE(note);
    ++note->id;
    REQUIRE(write_note(node.job, *note));
    const auto size = std::filesystem::file_size(node.partial);
    node.open();
    CHECK_FALSE(node.engine->recovered());
    CHECK(node.engine->status().recovered.find("another capture's") != std::string::npos);
    CHECK(std::filesystem::file_size(node.partial) == size);
    CHECK_FALSE(read_note(node.job));
}

TEST_CASE("engine: what dead processes left without any capture becomes a dump where it is asked") {
    Left node;
    node.make_directories();
    FakeSegment fake(node.job, {});
    node.write(fake.add_lane(64), 30);
    fake.die(false);
    node.open();
    CHECK_FALSE(node.engine->recovered());
    const auto left = node.engine->take_left_behind(Node::request());
    REQUIRE(left);
    REQUIRE(*left);
    CHECK((*left)->records == 30);
    CHECK(node.engine->removed_segments() == 1);
    CHECK_FALSE(exists(fake.path()));
    check_accounts(read_dump(node.dump));
    const auto again = node.engine->take_left_behind(Node::request());
    REQUIRE(again);
    CHECK_FALSE(*again);
}

TEST_CASE("engine: lanes that nobody drained for long become chunks of a bounded size") {
    Left node;
    node.make_directories();
    FakeSegment fake(node.job, {.bytes = 64ull << 20});
    std::uint64_t state = 1;
    const auto next = [&] {
        return state = state * 6364136223846793005ull + 1442695040888963407ull;
    };
    constexpr int kLanes = 12, kCells = 1 << 17;
    const std::uint64_t now = ticks_now();
    for (int i = 0; i < kLanes; ++i) {
        FakeLane& lane = fake.add_lane(kCells);
        // Ticks far apart, both ways: each takes most of its words.
        for (int n = 0; n < kCells; ++n) lane.range(0, next() % now, next() % now);
    }
    fake.die(false);
    node.open();
    const auto left = node.engine->take_left_behind(Node::request());
    REQUIRE(left);
    REQUIRE(*left);
    CHECK((*left)->complete);
    CHECK((*left)->records == std::uint64_t{kLanes} * kCells);
    std::ifstream file(node.dump, std::ios::binary);
    schema::FrameHeader frame{};
    std::uint64_t largest = 0, all = 0;
    while (file.read(reinterpret_cast<char*>(&frame), sizeof frame)) {
        largest = std::max<std::uint64_t>(largest, frame.length);
        all += frame.length;
        file.seekg(frame.length + schema::frame_padding(frame.length), std::ios::cur);
    }
    CHECK(all > 20 << 20);
    CHECK(largest < 17 << 20);
}

TEST_CASE("engine: what can't be ended now can be tried again; who only recovers is told so") {
    Left node;
    node.open();
    node.start();
    node.engine.reset();
    const std::string folder = node.top.sub("out/capture"), away = node.top.sub("out/away");
    std::filesystem::rename(folder, away);
    std::ofstream(folder) << "no folder";
    EngineOptions only = node.options();
    only.recover = {99, "recovered"};
    const auto refused = Engine::open(only);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("of an agent that died") != std::string::npos);
    CHECK(read_note(node.job));
    std::filesystem::remove(folder);
    std::filesystem::rename(away, folder);
    CHECK(node.must_recover().complete);
}

TEST_CASE("engine: what others left before the capture of one that died stays for who asks") {
    Left node;
    node.make_directories();
    FakeSegment dead(node.job, {.pid = 101});
    node.write(dead.add_lane(64), 30);
    dead.die(false);
    node.open();
    REQUIRE(node.engine->prepare(Node::request()));
    REQUIRE(node.engine->begin(Node::request().id, node.engine->node_now()));
    node.engine.reset();
    node.open();
    REQUIRE(node.engine->recovered());
    CHECK(node.engine->recovered()->processes.empty());
    CHECK(exists(dead.path()));
    CaptureRequest request = Node::request(7);
    request.name = "left";
    const auto left = node.engine->take_left_behind(request);
    REQUIRE(left);
    REQUIRE(*left);
    CHECK((*left)->records == 30);
}

TEST_CASE(
    "engine: a dead agent's window that does not fit its dump stays, whatever ends after it") {
    Left node;
    node.open();
    CaptureRequest request = Node::request();
    request.max_bytes = 20'000;
    REQUIRE(node.engine->capture_from_start(request));
    FakeSegment fake(node.job, {});
    FakeLane& lane = fake.add_lane(1 << 14);
    node.write(lane, 100);
    REQUIRE(node.has_written(100));
    node.engine.reset();
    node.write(lane, 10'000);
    // As if it had been made of pieces.
    auto note = read_note(node.job);
    REQUIRE(note);
    note->window = true;
    REQUIRE(write_note(node.job, *note));
    const std::string piece = node.job + "/" + piece_name(1);
    std::ofstream(piece) << "a piece";
    CHECK_FALSE(node.must_recover().complete);
    CHECK(exists(piece));
    request = Node::request(7);
    request.name = "later";
    REQUIRE(node.engine->capture_from_start(request));
    CHECK(node.stop(7).complete);
    CHECK(exists(piece));
}

TEST_CASE("note: it comes back as it was written; a torn one and a foreign one are none") {
    TemporaryDirectory directory;
    const Selection selection{{12, 13}, {0}, {"python 3", "sh"}, 4};
    const CaptureNote note{7,    "node 1", "/var/tmp/out put", "name", 500, 3, selection, true,
                           true, true};
    REQUIRE(write_note(directory.path(), note));
    CHECK(read_note(directory.path()) == note);
    const std::string path = directory.sub("capture");
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 4);
    CHECK_FALSE(read_note(directory.path()));
    std::ofstream(path) << "hello\n";
    CHECK_FALSE(read_note(directory.path()));
    CHECK_FALSE(write_note(directory.path(), {7, "two\nlines", "", "", 0, 0, {}, false, false}));
    remove_note(directory.path());
    CHECK_FALSE(exists(path));
}
