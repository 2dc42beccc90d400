// What is made of the pieces that a dead agent's window has left.
#include <unistd.h>

#include "agent/dump/partial_dump.hpp"
#include "agent/window/left_window.hpp"
#include "tests/unit/agent_data/window_rig.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;

namespace {

/// A window whose agent dies: two processes, the second of which ends up alone in it; each block's lane has lost one record more.
struct LeftRig : WindowRig {
    static constexpr std::uint32_t kGone = 3, kStays = 7;

    void tell() {
        for (const std::uint32_t index : {kGone, kStays}) {
            if (index == kGone && turns > 20) continue;
            ProcessFacts facts;
            facts.index = index;
            facts.segment.id = {1, 100 + index, 1};
            window->process(facts);
            NamesBatch names;
            names.process = index;
            names.names.push_back({1, "name", 0, 0});
            window->names(names);
        }
    }
    void put_told(std::uint32_t process, std::uint64_t base) {
        Block block = make_block(position, 10, base);
        position += 10;
        ++lost;
        block.process = process;
        block.lane = {2, 1};
        block.tally = {position, lost, 0, lost, 500, now};
        const Block* const list[] = {&block};
        REQUIRE(window->blocks(list));
    }
    void run(int count) {
        tell();
        for (; turns < count; ++turns) {
            if (turns == 5) put_told(kGone, now);
            // Half of each block's records began before the one that was drained last.
            put_told(kStays, now - 50);
            now += 500;
            if (window->turn()) tell();
        }
    }
    PartialDump copied() {
        window.reset();
        auto writer = DumpWriter::create({out.path(), "left", "node"});
        REQUIRE(writer);
        const FileHandle folder = directory();
        const auto header = copy_left_window(folder.get(), 77, **writer);
        REQUIRE(header);
        CHECK(header->capture_id == 77);
        const FileHandle file(::open(((*writer)->path() + ".partial").c_str(), O_RDONLY));
        auto partial = read_partial(file.get(), "left");
        REQUIRE(partial);
        CHECK(partial->cut == 0);
        CHECK(partial->header.start_ticks == header->start_ticks);
        return std::move(*partial);
    }

    TemporaryDirectory out;
    int turns = 0;
    std::uint64_t lost = 0;
};

}  // namespace

TEST_CASE("left window: nothing has aged: all that was written, each process and name once") {
    LeftRig rig;
    rig.open({1'000'000, 1 << 20});
    rig.run(30);
    const PartialDump dump = rig.copied();
    CHECK(dump.header.start_ticks == 1000);
    REQUIRE(dump.processes.size() == 2);
    CHECK(dump.processes[0].facts.segment.id.pid == 100 + LeftRig::kGone);
    CHECK(dump.processes[1].names.names.size() == 1);
    REQUIRE(dump.processes[1].accounts.size() == 1);
    const LaneAccount& account = dump.processes[1].accounts[0];
    CHECK(account.kept == 300);
    CHECK(account.outside == 0);
    CHECK(account.lost == rig.lost);
    CHECK(dump.processes[1].carries.at(2).position == rig.position);
    CHECK(dump.processes[1].carries.at(2).tally.records == rig.position);
}

TEST_CASE("left window: what has aged is outside, and so is what was lost then") {
    LeftRig rig;
    rig.open({8000, 1 << 20});
    rig.run(100);
    const PieceTotals totals = rig.window->store().totals();
    const PartialDump dump = rig.copied();
    CHECK(dump.header.start_ticks == totals.since_ticks);
    REQUIRE(dump.processes.size() == 1);  // the other one's records have aged out
    const LaneAccount& account = dump.processes[0].accounts[0];
    CHECK(account.kept + account.outside == totals.records);
    CHECK(account.outside == 5);  // of the first piece's first block
    const std::uint64_t blocks = totals.records / 10;
    CHECK(account.lost == blocks - 1);
    CHECK(account.first_lost_ticks == totals.since_ticks);
    CHECK(dump.processes[0].carries.at(2).tally.records == rig.position);
}

TEST_CASE(
    "left window: a thread that was born in it has lost what it has lost; a range that began long "
    "before ends nothing early") {
    LeftRig rig;
    rig.open({8000, 1 << 20});
    rig.run(50);
    Block born = make_block(0, 10, rig.now);
    born.process = LeftRig::kStays;
    born.lane = {4, 1};
    born.tally = {10, 1000, 0, 1000, rig.now, rig.now};
    // Its last five began before the window does.
    const std::uint64_t start = rig.window->store().totals().since_ticks;
    Block old = make_block(rig.position, 10, start + 40, -10);
    old.process = LeftRig::kStays;
    old.lane = {2, 1};
    old.tally = {rig.position + 10, rig.lost, 0, rig.lost, 500, rig.now};
    const Block* const list[] = {&born, &old};
    REQUIRE(rig.window->blocks(list));
    const PartialDump dump = rig.copied();
    REQUIRE(dump.processes.size() == 1);
    const auto& accounts = dump.processes[0].accounts;
    REQUIRE(accounts.size() == 2);
    CHECK(accounts[1].lane == schema::LaneId{4, 1});
    CHECK(accounts[1].lost == 1000);
    CHECK(accounts[0].outside == 10);
    CHECK(dump.processes[0].carries.at(2).position == rig.position + 10);
}

TEST_CASE("left window: what no window has written is left out") {
    LeftRig rig;
    rig.open({1'000'000, 1 << 20});
    rig.run(3);
    Block wild = make_block(0, 10, rig.now);  // before what its lane has reached
    wild.process = LeftRig::kStays;
    wild.lane = {2, 1};
    Block beyond = wild;
    beyond.lane = {schema::kMaxLanes, 1};
    const Block* const list[] = {&wild, &beyond};
    REQUIRE(rig.window->blocks(list));
    const PartialDump dump = rig.copied();
    CHECK(dump.processes.at(1).accounts.size() == 1);
    CHECK(dump.processes[1].accounts[0].kept == 30);
}

TEST_CASE("left window: pieces without a header are none") {
    WindowRig rig;
    rig.open({8000, 1 << 20});
    rig.window.reset();
    const FileHandle folder = rig.directory();
    REQUIRE(::truncate((rig.top.path() + "/" + piece_name(1)).c_str(), 40) == 0);
    TemporaryDirectory out;
    auto writer = DumpWriter::create({out.path(), "left", "node"});
    REQUIRE(writer);
    const auto header = copy_left_window(folder.get(), 77, **writer);
    REQUIRE_FALSE(header);
    CHECK(header.error().code == schema::ErrorCode::kInput);
    CHECK(header.error().message.find("ringside disarm") != std::string::npos);
}
