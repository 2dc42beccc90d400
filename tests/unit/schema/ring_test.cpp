// The two ends of a lane on 16-cell rings: zero, one, full, wrap, pad, drop, corrupt.
#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "schema/ring_reader.hpp"
#include "schema/ring_writer.hpp"

using namespace ringside::schema;

namespace {
constexpr std::uint32_t kCells = 16;

struct Lane {
    std::unique_ptr<LaneHeader> header = std::make_unique<LaneHeader>();
    std::vector<Cell> cells = std::vector<Cell>(kCells);
    RingWriter writer{header.get(), {cells.data(), kCells}};
    RingReader reader{header.get(), {cells.data(), kCells}};

    bool write(std::uint32_t count, std::uint64_t value) {
        Cell* cell = writer.reserve(count);
        if (cell == nullptr) return false;
        cell->words[0] =
            RecordHeader{RecordKind::kMark, static_cast<std::uint8_t>(count), 0, kNoName}.pack();
        cell->words[1] = value;
        writer.commit(count);
        return true;
    }
};
}  // namespace

TEST_CASE("reader: an empty lane gives nothing and is not corrupt") {
    Lane lane;
    CHECK(lane.reader.poll().count == 0);
    CHECK_FALSE(lane.reader.poll().corrupt);
}

TEST_CASE("reader: a reserved record that is not committed is not delivered") {
    Lane lane;
    REQUIRE(lane.writer.reserve(2) != nullptr);
    CHECK(lane.reader.poll().count == 0);
}

TEST_CASE("writer: a full lane refuses, and takes again what the reader has released") {
    Lane lane;
    for (std::uint32_t i = 0; i < kCells; ++i) REQUIRE(lane.write(1, i));
    CHECK_FALSE(lane.write(1, 99));
    lane.reader.release(1);
    CHECK(lane.write(1, 16));
}

TEST_CASE(
    "writer: a record that would wrap starts anew behind a pad, and every value arrives in order") {
    Lane lane;
    std::uint64_t next = 0, expected = 0;
    for (int round = 0; round < 1000; ++round) {
        while (lane.write(1 + next % 7, next)) ++next;
        for (CellSpan span = lane.reader.poll(); span.count != 0; span = lane.reader.poll()) {
            REQUIRE_FALSE(span.corrupt);
            for (std::uint32_t i = 0; i < span.count;) {
                const RecordHeader header = RecordHeader::unpack(span.cells[i].words[0]);
                REQUIRE(header.cells > 0);
                if (header.kind != RecordKind::kPad) CHECK(span.cells[i].words[1] == expected++);
                i += header.cells;
            }
            lane.reader.release(span.count);
        }
    }
    CHECK(expected == next);
    CHECK(lane.header->records.load() == next);
}

TEST_CASE("writer: drops are counted with the interval of their ticks") {
    Lane lane;
    lane.writer.drop({10});
    lane.writer.drop({30}, 2);
    CHECK(lane.header->dropped.load() == 3);
    CHECK(lane.header->first_drop_ticks.load() == 10);
    CHECK(lane.header->last_drop_ticks.load() == 30);
}

TEST_CASE("reader: a committed position before the tail or beyond the capacity is corrupt") {
    Lane lane;
    REQUIRE(lane.write(4, 0));
    lane.reader.release(4);
    lane.header->committed.store(3);
    CHECK(lane.reader.poll().corrupt);
    lane.header->committed.store(4 + kCells + 1);
    CHECK(lane.reader.poll().corrupt);
}

TEST_CASE("writer and reader: go on where others stopped") {
    Lane lane;
    REQUIRE(lane.write(3, 1));
    RingWriter second(lane.header.get(), {lane.cells.data(), kCells});
    CHECK(second.position() == 3);
    lane.reader.release(2);
    CHECK(RingReader(lane.header.get(), {lane.cells.data(), kCells}).poll().count == 1);
}
