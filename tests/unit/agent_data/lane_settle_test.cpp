// When a lane's cells are the producer's again, when a lane is the process's again, and how a successor goes on.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "tests/unit/agent_data/lane_rig.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;

namespace {

/// An agent that comes after the rig's, which has died: it knows the rig's blocks and the segment, no more.
struct Successor {
    std::unique_ptr<MappedSegment> segment;
    std::unique_ptr<ProcessDrainer> drainer;

    explicit Successor(Rig& rig) {
        auto opened = MappedSegment::open(rig.handle.get(), rig.directory.path(),
                                          {kForeignNamespace, 100, 1});
        REQUIRE(opened);
        segment = std::move(*opened);
        drainer = std::make_unique<ProcessDrainer>(*segment);
        LaneAccount account;
        const Block& last = rig.blocks.back();
        account.lane = last.lane;
        account.outside = last.tally.outside;
        account.lost = last.tally.lost;
        for (const Block& block : rig.blocks) account.kept += block.records;
        drainer->resume(
            0, {account},
            {{0, {last.lane, last.last, last.base_ticks, last.tally, last.end_context, 0}}}, 0);
    }
    std::uint64_t finish(Rig& rig) {
        const auto cells = drainer->drain(*rig.buffers, kAll, ticks_now(), true).cells;
        drainer->seal(*rig.buffers, kAll, ticks_now(), true);
        drainer->settle_all(*rig.buffers, true, ticks_now());
        return cells;
    }
    const LaneAccount& account(std::size_t index = 0) { return drainer->accounts().at(index); }
};

void write(FakeLane& lane, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) lane.range(0, ticks_now(), ticks_now());
}

}  // namespace

TEST_CASE(
    "drain: what is kept is the producer's again once its block has gone to the sink, what is "
    "thrown away at once") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(16);
    const auto tail = [&] { return lane.header()->tail.load(); };
    for (std::uint64_t i = 0; i < 16; ++i) lane.range(0, 10, 20);
    CHECK(rig.drain() == 16);
    CHECK(tail() == 0);
    CHECK_FALSE(lane.range(0, 10, 20));
    rig.drainer.seal(*rig.buffers, kAll, 0, false);
    CHECK(tail() == 0);
    rig.drainer.settle_all(*rig.buffers, true, ticks_now());
    CHECK(tail() == 16);
    CHECK(lane.range(0, 10, 20));
    SUBCASE("the capture's instant is not agreed") {
        rig.drain({});
        CHECK(tail() == 17);
    }
    SUBCASE("the capture is over") {
        rig.drainer.stop(*rig.buffers);
        rig.drain();
        CHECK(tail() == 17);
    }
    SUBCASE("the sink does not keep it: it is lost") {
        rig.drain();
        CHECK(tail() == 16);
        rig.drainer.seal(*rig.buffers, kAll, 0, false);
        rig.drainer.settle_all(*rig.buffers, false, ticks_now());
        CHECK(tail() == 17);
        CHECK(rig.account().lost == 2);
    }
}

TEST_CASE(
    "drain: what a disarmed window had begun is in no capture after it, and its cells are the "
    "producer's again") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(16);
    write(lane, 16);
    CHECK(rig.drain() == 16);
    CHECK_FALSE(lane.range(0, 10, 20));
    rig.drainer.stop(*rig.buffers);
    CHECK(lane.header()->tail.load() == 16);
    CHECK(rig.drainer.pending_bytes() == 0);
    rig.drainer.start(0);
    lane.range(0, 30, 40);
    rig.drain();
    const auto records = rig.take(true);
    REQUIRE(records.size() == 1);
    CHECK(records[0].words[1] == 30);
    CHECK(rig.account().kept == 1);
}

TEST_CASE("drain: buffers of written blocks are used again, have a bound together, and go") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(4096);
    write(lane, 4096);
    rig.drain();
    rig.take();
    SpareBuffers& spares = rig.buffers->spares;
    const std::size_t one = spares.bytes();
    CHECK(one > 4096);
    write(lane, 1);
    rig.drain();
    CHECK(spares.bytes() == 0);
    rig.take();
    CHECK(spares.bytes() == one);
    for (int i = 0; i < 1000; ++i) spares.give(std::vector<std::uint8_t>(one));
    CHECK(spares.bytes() > SpareBuffers::kMostBytes / 2);
    CHECK(spares.bytes() <= SpareBuffers::kMostBytes);
    CHECK(spares.take().empty());
    spares.release();
    CHECK(spares.bytes() == 0);
    CHECK(spares.take().capacity() == 0);
}

TEST_CASE("drain: a lane whose account alone has changed says so in a block without records") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(16);
    lane.range(0, 5, 6);
    rig.drain({100, 200});
    CHECK(lane.header()->tail.load() == 0);
    CHECK(rig.take().empty());
    REQUIRE(rig.blocks.size() == 1);
    CHECK(rig.blocks[0].records == 0);
    CHECK(rig.blocks[0].last == 1);
    CHECK(rig.blocks[0].tally == LaneTally{1, 0, 1, 0, 0, 0});
    CHECK(lane.header()->tail.load() == 1);
    CHECK(rig.take().empty());
    CHECK(rig.blocks.size() == 1);
}

TEST_CASE(
    "drain: a released lane is drained, accounted for and given back; its next thread has an "
    "account of its own") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(64);
    lane.range(0, 1, 2);
    lane.header()->state.store(schema::pack_lane_state(schema::LaneState::kReleased, 1));
    rig.drain();
    // Its records stand in no file yet: who comes after us must find the lane as it is.
    CHECK(schema::lane_state(lane.header()->state.load()) == schema::LaneState::kReleased);
    rig.take();
    CHECK(lane.header()->state.load() == schema::pack_lane_state(schema::LaneState::kFree, 1));
    lane.header()->state.store(schema::pack_lane_state(schema::LaneState::kUsed, 2));
    lane.header()->tid.store(2000);
    lane.range(0, 3, 4);
    lane.range(0, 5, 6);
    rig.drain();
    rig.take();
    REQUIRE(rig.drainer.accounts().size() == 2);
    CHECK(rig.account(0).kept == 1);
    CHECK(rig.account(0).tid == 1000);
    CHECK(rig.account(1).kept == 2);
    CHECK(rig.account(1).tid == 2000);
    CHECK(rig.account(1).lane == schema::LaneId{0, 2});
    REQUIRE(rig.blocks.size() == 2);
    CHECK(rig.blocks[1].first == 1);
}

TEST_CASE("drain: a lane that changes hands while it is looked at gives each thread its own") {
    constexpr std::uint32_t kThreads = 20000, kEach = 3;
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(64);
    std::atomic<std::uint32_t>& state = lane.header()->state;
    std::atomic<bool> done{false};
    std::thread writer([&] {
        for (std::uint32_t generation = 1; generation <= kThreads; ++generation) {
            // As the shim: a lane is claimed once the agent has given it back.
            const auto used = schema::pack_lane_state(schema::LaneState::kUsed, generation);
            while (generation > 1 && schema::lane_state(state) != schema::LaneState::kFree) {
            }
            state.store(used);
            for (std::uint32_t i = 0; i < kEach; ++i) lane.range(0, generation, generation);
            state.store(schema::pack_lane_state(schema::LaneState::kReleased, generation));
        }
        done = true;
    });
    while (!done) {
        rig.drain();
        rig.take();
    }
    rig.drain();
    writer.join();
    rig.take(true);
    const auto& accounts = rig.drainer.accounts();
    REQUIRE(accounts.size() == kThreads);
    for (std::uint32_t i = 0; i < kThreads; ++i) {
        REQUIRE(accounts[i].lane.generation == i + 1);
        REQUIRE(accounts[i].kept == kEach);
    }
    CHECK(rig.drainer.violations() == 0);
}

TEST_CASE("drain: a lane that is not yet empty is not given back") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(64);
    rig.drain();
    lane.range(0, 1, 2);
    CHECK(schema::lane_state(lane.header()->state.load()) == schema::LaneState::kUsed);
    lane.header()->state.store(schema::pack_lane_state(schema::LaneState::kReleased, 1));
    CHECK(rig.drain() == 1);
    CHECK(rig.take().size() == 1);
    CHECK(schema::lane_state(lane.header()->state.load()) == schema::LaneState::kFree);
}

TEST_CASE("drain: a successor takes what was taken and stands in no file, and nothing twice") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(64);
    write(lane, 10);
    rig.drain();
    SUBCASE("it died after the release") {
        rig.take();
        CHECK(lane.header()->tail.load() == 10);
    }
    SUBCASE("it died between the write and the release") {
        rig.drainer.seal(*rig.buffers, kAll, 0, false);
        rig.blocks.push_back(rig.drainer.sealed().at(0));
        CHECK(lane.header()->tail.load() == 0);
    }
    write(lane, 5);
    rig.drain();
    write(lane, 2);
    Successor next(rig);
    CHECK(next.finish(rig) == 7);
    CHECK(next.account().kept == 17);
    CHECK(next.account().written() == 17);
    CHECK(next.drainer->violations() == 0);
    CHECK(lane.header()->tail.load() == 17);
}

TEST_CASE("drain: what was taken before a successor and written nowhere is lost to it") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(64);
    write(lane, 10);
    rig.drain();
    rig.take();
    write(lane, 7);
    rig.drain();
    rig.drainer.seal(*rig.buffers, kAll, 0, false);
    rig.drainer.settle_all(*rig.buffers, false, ticks_now());
    write(lane, 3);
    Successor next(rig);
    CHECK(next.finish(rig) == 3);
    CHECK(next.account().kept == 13);
    CHECK(next.account().lost == 7);
    CHECK(next.drainer->violations() == 0);
}

TEST_CASE("drain: a successor counts the drops that no block tells of, and those alone") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(16);
    write(lane, 20);
    rig.drain();
    rig.take();
    CHECK(rig.account().lost == 4);
    write(lane, 21);
    Successor next(rig);
    next.finish(rig);
    CHECK(next.account().kept == 32);
    CHECK(next.account().lost == 9);
    CHECK(next.account().written() == 41);
}

TEST_CASE("drain: a lane whose thread ended under two agents has one account, and is given back") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(64);
    write(lane, 4);
    lane.header()->state.store(schema::pack_lane_state(schema::LaneState::kReleased, 1));
    rig.drain();
    rig.blocks.push_back(rig.drainer.sealed().at(0));
    Successor next(rig);
    CHECK(next.finish(rig) == 0);
    REQUIRE(next.drainer->accounts().size() == 1);
    CHECK(next.account().kept == 4);
    CHECK(schema::lane_state(lane.header()->state.load()) == schema::LaneState::kFree);
    lane.header()->state.store(schema::pack_lane_state(schema::LaneState::kUsed, 2));
    write(lane, 3);
    CHECK(next.finish(rig) == 3);
    REQUIRE(next.drainer->accounts().size() == 2);
    CHECK(next.account(1).kept == 3);
}

TEST_CASE("drain: where a dead agent's blocks end is of use to its own capture alone") {
    Rig rig;
    FakeLane &lane = rig.fake.add_lane(64), &later = rig.fake.add_lane(64);
    LaneAccount account;
    account.lane = {1, schema::lane_generation(later.header()->state.load())};
    // The capture ends before the lane has been looked at.
    rig.drainer.resume(0, {account}, {{1, {account.lane, 0, 0, {}, {}, 0}}}, 0);
    rig.drainer.stop(*rig.buffers);
    rig.drainer.start(0);
    write(lane, 3);
    write(later, 5);
    rig.drain();
    rig.take();
    REQUIRE(rig.drainer.accounts().size() == 2);
    CHECK(rig.account(0).kept == 3);
    CHECK(rig.account(1).kept == 5);
}

TEST_CASE("drain: what a dead agent took is not counted as the next capture's loss") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(64);
    write(lane, 10);
    rig.drain();
    rig.take();
    rig.drainer.stop(*rig.buffers);
    write(lane, 5);
    rig.drain();
    Successor successor(rig);
    // Its lane has gone bad before anybody could look: the capture ends without its last word.
    CHECK(successor.drainer->drain(*rig.buffers, kAll, ticks_now(), true).cells == 0);
    successor.drainer->stop(*rig.buffers);
    successor.drainer->start(0);
    write(lane, 3);
    CHECK(successor.finish(rig) == 3);
    CHECK(successor.account().kept == 3);
    CHECK(successor.account().lost == 0);
}
