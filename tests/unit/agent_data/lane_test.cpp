// Draining lanes of a segment that lies in this process: what is delivered, what is counted, what comes back.
#include <doctest/doctest.h>

#include "tests/unit/agent_data/lane_rig.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;
using schema::RecordHeader;
using schema::RecordKind;

TEST_CASE("drain: an idle lane gives nothing and has no account") {
    Rig rig;
    rig.fake.add_lane(64);
    CHECK(rig.drain() == 0);
    CHECK(rig.take(true).empty());
    CHECK(rig.drainer.accounts().empty());
}

TEST_CASE("drain: a record part-way through writing is not delivered") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(64);
    REQUIRE(lane.range(0, 10, 20));
    schema::Cell* torn = lane.writer().reserve(1);
    torn->words[0] = RecordHeader{RecordKind::kRange, 1, 0, {}}.pack();
    torn->words[1] = 30;
    CHECK(rig.drain() == 1);
    CHECK(rig.take().size() == 1);
    CHECK(rig.account().kept == 1);
    CHECK(rig.account().written() == 1);
}

TEST_CASE(
    "drain: a lane whose block is long enough waits for the sink, the lane beside it does not") {
    Rig rig;
    constexpr std::uint32_t kCells = 4 * DrainBuffers::kBatchCells;
    constexpr std::uint32_t kRecords = kCells - 8;
    FakeLane& full = rig.fake.add_lane(kCells);
    FakeLane& other = rig.fake.add_lane(64);
    for (std::uint64_t i = 0; i < kRecords; ++i) REQUIRE(full.range(0, 10 + i, 20 + i));
    REQUIRE(other.range(0, 10, 20));
    std::size_t records = 0, passes = 0;
    for (bool more = true; more; ++passes) {
        const auto pass = rig.drainer.drain(*rig.buffers, kAll, ticks_now(), true, 1);
        // Its first batch, and all of the other's: more of it would be asked for at once.
        CHECK(pass.cells <= DrainBuffers::kBatchCells + 1);
        CHECK((pass.fullest == 1) == (pass.cells != 0));
        const auto again = rig.drainer.drain(*rig.buffers, kAll, ticks_now(), true, 1);
        CHECK(again.cells == 0);
        records += rig.take().size();
        more = pass.cells != 0;
    }
    CHECK(passes == 5);
    CHECK(records == kRecords + 1);
    CHECK(rig.account(0).kept == kRecords);
    CHECK(rig.account(0).lost == 0);
}

TEST_CASE("drain: what overruns a small lane is counted exactly, with its interval") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(16);
    std::uint64_t refused = 0;
    for (std::uint64_t i = 1; i <= 1000; ++i) {
        refused += lane.range(0, i * 10, i * 10 + 5) ? 0 : 1;
        if (i % 50 == 0) rig.drain();
    }
    rig.drain();
    const auto records = rig.take();
    CHECK(refused > 500);
    CHECK(records.size() == 1000 - refused);
    CHECK(rig.account().kept == 1000 - refused);
    CHECK(rig.account().lost == refused);
    CHECK(rig.account().written() == 1000);
    CHECK(rig.account().first_lost_ticks == 175);
    CHECK(rig.account().last_lost_ticks == 10005);
    CHECK(lane.header()->records.load() == records.size());
}

TEST_CASE("drain: losses that one pass sees twice begin with the first of them") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(16);
    for (const std::uint64_t ticks : {1000, 5000}) {
        for (std::uint64_t i = 0; i < 20; ++i) lane.range(0, ticks + i, ticks + i);
        rig.drainer.drain(*rig.buffers, kAll, 0, true);
        rig.take();
    }
    CHECK(rig.account().lost == 8);
    CHECK(rig.account().first_lost_ticks == 1016);
    CHECK(rig.account().last_lost_ticks == 5019);
}

TEST_CASE("drain: what was dropped before the instant or after the stop is outside, not lost") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(16);
    const auto overrun = [&](std::uint64_t ticks) {
        for (int i = 0; i < 20; ++i) lane.range(0, ticks, ticks);
    };
    const std::uint64_t before = ticks_now();
    overrun(before);
    // Not agreed yet: no instant is inside.
    rig.drain({});
    CHECK(rig.account().outside == 20);
    overrun(ticks_now());
    TickRange range{ticks_now(), ~0ull};
    rig.drain(range);
    rig.take();
    CHECK(rig.account().lost == 0);
    overrun(ticks_now());
    rig.drain(range);
    rig.take();
    CHECK(rig.account().lost == 4);
    range.stop = ticks_now();
    rig.drain(range);
    overrun(ticks_now());
    rig.drain(range);
    rig.take();
    CHECK(rig.account().lost == 4);
    CHECK(rig.account().written() == 80);
}

TEST_CASE("drain: the begin decides whether a record is inside the capture") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(64);
    lane.range(0, 99, 150);
    lane.range(0, 100, 101);
    lane.range(0, 200, 900);
    lane.range(0, 201, 202);
    rig.drain({100, 200});
    const auto records = rig.take();
    REQUIRE(records.size() == 2);
    CHECK(records[0].words[1] == 100);
    CHECK(records[1].words[2] == 900);
    CHECK(rig.account().outside == 2);
    CHECK(rig.account().written() == 4);
    CHECK(rig.blocks[0].first == 1);
    CHECK(rig.blocks[0].last == 4);  // what was outside has been taken, too
    CHECK(rig.blocks[0].tally.outside == 2);
}

TEST_CASE("drain: records left out in the middle of a block keep the positions absolute") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(64);
    lane.range(0, 100, 101);
    lane.range(0, 5, 6);
    lane.range(0, 110, 111);
    rig.drain({100, 200});
    rig.drainer.seal(*rig.buffers, kAll, 0, false);
    REQUIRE(rig.drainer.sealed().size() == 1);
    const Block& block = rig.drainer.sealed()[0];
    schema::BlockDecoder decoder(block.data.data(), block.data.size(), block.base_ticks);
    schema::DecodedRecord record{};
    std::uint64_t position = block.first;
    std::vector<std::uint64_t> positions;
    while (decoder.next(record)) {
        if (record.header().kind != RecordKind::kPad) positions.push_back(position);
        position += record.cells;
    }
    CHECK(positions == std::vector<std::uint64_t>{0, 2});
}

TEST_CASE(
    "drain: every record of a lane that wraps many times arrives, in order, over batches that cut "
    "records") {
    Rig rig;
    constexpr std::uint32_t kCells = 16384;
    FakeLane& lane = rig.fake.add_lane(kCells);
    std::uint64_t next = 1, expected = 1;
    for (int round = 0; round < 20; ++round) {
        for (;; ++next) {
            schema::Cell cells[8] = {};
            const auto count = static_cast<std::uint8_t>(1 + next % 8);
            cells[0].words[0] = RecordHeader{static_cast<RecordKind>(40), count, 0, {}}.pack();
            cells[0].words[1] = next;
            if (lane.writer().reserve(count) == nullptr) break;
            REQUIRE(lane.put(cells, count, next));
        }
        while (rig.drain() != 0) {
        }
        for (const auto& record : rig.take()) REQUIRE(record.words[1] == expected++);
    }
    CHECK(expected == next);
    CHECK(rig.account().kept == next - 1);
    CHECK(rig.drainer.unknown_records() == next - 1);
    CHECK(rig.drainer.violations() == 0);
}

TEST_CASE("drain: an inline name comes with its record or not at all") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(64);
    for (const std::uint64_t begin : {50u, 150u}) {
        schema::Cell* cells = lane.writer().reserve(2);
        schema::NameInlineRecord name{};
        name.header = RecordHeader{RecordKind::kNameInline, 1, 0, {}}.pack();
        name.length = 3;
        std::memcpy(name.bytes, "abc", 3);
        std::memcpy(static_cast<void*>(cells), &name, sizeof name);
        cells[1].words[0] = RecordHeader{RecordKind::kRange, 1, 0, schema::kInlineName}.pack();
        cells[1].words[1] = begin;
        cells[1].words[2] = begin + 1;
        cells[1].words[3] = 0;
        lane.writer().commit(2);
    }
    rig.drain({100, 200});
    const auto records = rig.take();
    REQUIRE(records.size() == 2);
    CHECK(records[0].header().kind == RecordKind::kNameInline);
    CHECK(records[1].words[1] == 150);
    CHECK(rig.account().kept == 1);
    CHECK(rig.account().outside == 1);
}

TEST_CASE("drain: a block says which request its lane served at its first record") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(64);
    const schema::ContextRecord on{
        RecordHeader{RecordKind::kContext, 2, schema::kContextOn, {}}.pack(),
        10,
        77,
        0,
        1,
        2,
        3,
        0};
    lane.put(&on, 2, 10);
    lane.range(0, 11, 12);
    rig.drain();
    rig.take();
    lane.range(0, 20, 21);
    rig.drain();
    rig.take();
    REQUIRE(rig.blocks.size() == 2);
    CHECK(rig.blocks[0].context.state == schema::ContextState::kNone);
    CHECK(rig.blocks[1].context == LaneContext{schema::ContextState::kServing, 77, 1, 2, 3});
}

TEST_CASE("drain: open ranges stand in the last block, those of a silent lane too") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(64);
    lane.push_open(rig.fake.intern("outer"), 40);
    rig.drain();
    CHECK(rig.take(false).empty());
    CHECK(rig.blocks.empty());
    CHECK(rig.take(true).empty());
    REQUIRE(rig.blocks.size() == 1);
    REQUIRE(rig.blocks[0].open.size() == 1);
    CHECK(rig.blocks[0].open[0].begin == 40);
    CHECK(rig.blocks[0].records == 0);
    NamesBatch names;
    CHECK(rig.drainer.names().take(names));
    CHECK(names.names.at(0).text == "outer");
}

TEST_CASE(
    "drain: RPC halves find their ends, whichever is drained first, and only where both were "
    "kept") {
    Rig rig;
    FakeLane& first = rig.fake.add_lane(64);
    FakeLane& second = rig.fake.add_lane(64);
    const auto self = rig.fake.intern("worker0"), peer = rig.fake.intern("worker1");
    first.rpc_end(30, 1);
    second.rpc_begin(self, 10, 1, false, self, peer, 0xabc);
    second.rpc_begin(self, 12, 2, true, self, peer, 0xdef);
    rig.drain();
    rig.take();
    second.rpc_end(40, 2);
    rig.drain();
    rig.drainer.seal(*rig.buffers, kAll, 0, false);
    rig.drainer.settle_all(*rig.buffers, false, ticks_now());
    const auto& halves = rig.drainer.halves().halves();
    REQUIRE(halves.size() == 2);
    CHECK(halves[0].ended);
    CHECK(halves[0].end_ticks == 30);
    CHECK(halves[0].id.span.value == 0xabc);
    CHECK(rig.drainer.names().text(halves[0].peer) == "worker1");
    CHECK(halves[1].server);
    CHECK_FALSE(halves[1].ended);
    CHECK(rig.account(1).lost + rig.account(0).lost == 1);
}
