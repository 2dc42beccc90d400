// A window's parts: pieces that age by time and bytes, a reader that pins them, the part of a block that a range keeps, what was lost when.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "agent/window/block_part.hpp"
#include "agent/window/loss_log.hpp"
#include "tests/unit/agent_data/window_rig.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;

namespace {

std::vector<std::uint64_t> arguments_of(const Block& block) {
    std::vector<std::uint64_t> arguments;
    schema::BlockDecoder decoder(block.data.data(), block.data.size(), block.base_ticks);
    schema::DecodedRecord record;
    std::uint64_t position = block.first;
    while (decoder.next(record)) {
        if (record.header().kind == schema::RecordKind::kRange) {
            CHECK(record.words[3] == position);
            arguments.push_back(record.words[3]);
        }
        position += record.cells;
    }
    CHECK_FALSE(decoder.damaged());
    CHECK(position == block.last);
    return arguments;
}

}  // namespace

TEST_CASE("window: what is older than it keeps goes piece by piece, and is counted") {
    WindowRig rig;
    rig.open({8000, 1 << 20});
    for (int i = 0; i < 100; ++i) {
        CHECK(rig.put(10));
        rig.now += 500;
        rig.window->turn();
    }
    const PieceTotals totals = rig.window->store().totals();
    // All of the last 8000, and no more than a piece (1000) and the step before it besides.
    CHECK(totals.since_ticks <= rig.now - 8000);
    CHECK(totals.since_ticks >= rig.now - 9500);
    CHECK(totals.records + totals.aged_records == 1000);
    CHECK(totals.aged_until_ticks == totals.since_ticks);
    CHECK_FALSE(totals.aged_by_bytes);
    const auto held = rig.positions();
    REQUIRE_FALSE(held.empty());
    CHECK(held.front() == totals.aged_records);
    CHECK(held.size() * 10 == totals.records);
}

TEST_CASE("window: its bytes stay within the bound, the newest is kept") {
    WindowRig rig;
    constexpr std::uint64_t kBound = 100'000;
    rig.open({1'000'000'000, kBound});
    for (int i = 0; i < 1000; ++i) {
        REQUIRE(rig.put(100));
        rig.now += 10;
        rig.window->turn();
        CHECK(rig.window->store().totals().bytes <= kBound);
    }
    const PieceTotals totals = rig.window->store().totals();
    CHECK(totals.aged_by_bytes);
    CHECK(totals.bytes > kBound / 2);
    CHECK(totals.records + totals.aged_records == 100'000);
    std::uint64_t on_disk = 0;
    const FileHandle directory = rig.directory();
    for (const FoundPiece& piece : find_pieces(directory.get())) on_disk += piece.bytes;
    CHECK(on_disk == totals.bytes);
    CHECK(rig.positions().back() == 99'900);
    rig.window->set_bounds({1'000'000'000, kBound / 4});
    CHECK(rig.window->store().totals().bytes <= kBound / 4);
}

TEST_CASE("window: an idle one begins no new pieces") {
    WindowRig rig;
    rig.open({8000, 1 << 20});
    for (int i = 0; i < 100; ++i) {
        rig.now += 5000;
        CHECK_FALSE(rig.window->turn());
    }
    CHECK(rig.window->store().totals().pieces == 1);
}

TEST_CASE("window: what a reader has pinned stays until it has passed, up to twice the bound") {
    WindowRig rig;
    constexpr std::uint64_t kBound = 50'000;
    rig.open({1'000'000'000, kBound});
    for (int i = 0; i < 20; ++i) {
        REQUIRE(rig.put(100));
        rig.now += 10;
        rig.window->turn();
    }
    PieceCursor cursor = rig.window->store().pin(0);
    const std::uint64_t first = rig.positions().front();
    int kept = 0, refused = 0;
    for (int i = 0; i < 400; ++i) {
        (rig.put(100) ? kept : refused)++;
        rig.now += 10;
        rig.window->turn();
    }
    CHECK(refused > 0);
    CHECK(rig.window->store().totals().bytes <= 2 * kBound);
    CHECK(rig.positions().front() == first);
    rig.window->store().mark_end();
    FrameRef frame;
    std::uint64_t records = 0;
    std::vector<std::uint8_t> buffer;
    std::uint64_t bytes = 0;
    while (rig.window->store().next(cursor, frame)) {
        CHECK(read_frame(frame.file->get(), frame.offset, buffer, bytes) != nullptr);
        records += frame.facts.records;
    }
    CHECK(records == (20u + static_cast<unsigned>(kept)) * 100);
    rig.window->store().unpin();
    CHECK(rig.window->store().totals().bytes <= kBound);
}

TEST_CASE("window: a reader waits for the next frame, and ends at the mark") {
    WindowRig rig;
    rig.open({1'000'000'000, 1 << 20});
    std::atomic<std::uint64_t> read{0};
    PieceCursor cursor = rig.window->store().pin(0);
    std::thread reader([&] {
        FrameRef frame;
        while (rig.window->store().next(cursor, frame)) read += frame.facts.records;
    });
    for (int i = 1; i <= 50; ++i) {
        REQUIRE(rig.put(10));
        rig.now += 1'000'000'000 / 16;
        rig.window->turn();
        REQUIRE(eventually([&] { return read == static_cast<std::uint64_t>(i) * 10; }));
    }
    rig.window->store().mark_end();
    REQUIRE(rig.put(10));
    reader.join();
    CHECK(read == 500);
}

TEST_CASE(
    "window: pieces are this user's alone, and outlive their window; a torn end is left out") {
    WindowRig rig;
    rig.open({8000, 1 << 20});
    for (int i = 0; i < 6; ++i) {
        REQUIRE(rig.put(10));
        rig.now += 2000;
        rig.window->turn();
    }
    const auto held = rig.positions();
    rig.window.reset();
    CHECK(rig.positions() == held);
    const FileHandle directory = rig.directory();
    const auto pieces = find_pieces(directory.get());
    REQUIRE(pieces.size() > 2);
    for (const FoundPiece& piece : pieces) {
        struct stat status {};
        REQUIRE(::stat(rig.top.sub(piece_name(piece.sequence)).c_str(), &status) == 0);
        CHECK((status.st_mode & 0777) == 0600);
    }
    // As a kill in the middle of a write would leave it.
    const std::string torn = rig.top.sub(piece_name(pieces[1].sequence));
    REQUIRE(::truncate(torn.c_str(), static_cast<off_t>(pieces[1].bytes - 8)) == 0);
    CHECK(rig.positions().size() == held.size() - 1);
    REQUIRE(::symlink("/etc/passwd", rig.top.sub("window.999").c_str()) == 0);
    CHECK(find_pieces(directory.get()).size() == pieces.size());
    CHECK(remove_pieces(directory.get()) == pieces.size());
    CHECK(find_pieces(directory.get()).empty());
}

TEST_CASE("window: a new one begins empty, whatever a dead agent has left") {
    WindowRig rig;
    rig.open({8000, 1 << 20});
    REQUIRE(rig.put(10));
    rig.window.reset();
    rig.open({8000, 1 << 20});
    CHECK(rig.positions().empty());
    CHECK_FALSE(Window::create(rig.directory(), {}, "node", {8000, 1ull << 62}, [] { return 0; }));
}

TEST_CASE("window: no name but its own is a piece") {
    CHECK(parse_piece_name("window.1") == 1);
    CHECK(parse_piece_name(piece_name(~0ull)) == ~0ull);
    for (const char* name : {"window.", "window.0", "window.01", "window.1x", "window", "1.2.3",
                             "window.-1", "window.18446744073709551616", "control"})
        CHECK_FALSE(parse_piece_name(name));
}

TEST_CASE("block part: a range keeps what began in it, positions and all") {
    const Block whole = make_block(100, 50, 1000);
    Block block = whole;
    block.open = {{1005, 1, 0, 0}, {900, 2, 0, 0}};
    std::uint64_t outside = 0;
    REQUIRE(keep_part(block, {1100, 1290}, outside));
    CHECK(outside == 30);
    CHECK(block.records == 20);
    CHECK(block.first == 110);
    CHECK(block.last == 130);
    CHECK(block.base_ticks == 1100);
    CHECK(block.open.empty());
    const auto arguments = arguments_of(block);
    REQUIRE(arguments.size() == 20);
    CHECK(arguments.front() == 110);
    CHECK(arguments.back() == 129);

    block = whole;
    REQUIRE(keep_part(block, {1000, 2000}, outside));
    CHECK(block.data == whole.data);
    CHECK(outside == 30);
    block = whole;
    REQUIRE(keep_part(block, {5000, 6000}, outside));
    CHECK(block.records == 0);
    CHECK(block.first == block.last);
    CHECK(block.data.empty());
    CHECK(outside == 80);
}

TEST_CASE("block part: a damaged block is left as it is") {
    Block block = make_block(0, 50, 1000);
    block.data.resize(block.data.size() - 1);
    const Block before = block;
    std::uint64_t outside = 0;
    CHECK_FALSE(keep_part(block, {1100, 1200}, outside));
    CHECK(block.data == before.data);
    CHECK(outside == 0);
}

TEST_CASE("block part: an inline name goes with its record, the context is followed to the first") {
    using schema::RecordHeader;
    using schema::RecordKind;
    Block block;
    block.base_ticks = 10;
    std::vector<std::uint8_t> bytes(4096);
    schema::BlockEncoder encoder(10);
    std::uint8_t* out = bytes.data();
    const auto inlined = [&](std::uint64_t length) {
        const std::uint64_t words[4] = {RecordHeader{RecordKind::kNameInline, 1, 0x10, {}}.pack(),
                                        length, 7, 0x6161};
        out = encoder.record(words, out);
    };
    const auto range = [&](std::uint64_t begin) {
        const std::uint64_t words[4] = {
            RecordHeader{RecordKind::kRange, 1, 0x10, schema::kInlineName}.pack(), begin, begin + 1,
            0};
        out = encoder.record(words, out);
    };
    inlined(2);
    range(10);
    schema::ContextRecord context{};
    context.header = RecordHeader{
        RecordKind::kContext,
        2,
        schema::record_flags(schema::SourceId::kApi, 1),
        {}}.pack();
    context.ticks = 20;
    context.key = 77;
    std::uint64_t words[8];
    static_assert(sizeof context == sizeof words);
    std::memcpy(words, &context, sizeof words);
    out = encoder.record(words, out);
    inlined(3);
    range(30);
    block.data.assign(bytes.data(), out);
    block.records = 3;
    block.last = 6;
    std::uint64_t outside = 0;
    REQUIRE(keep_part(block, {25, 100}, outside));
    CHECK(outside == 2);
    CHECK(block.records == 1);
    CHECK(block.first == 4);
    CHECK(block.last == 6);
    CHECK(block.context.key == 77);
    schema::BlockDecoder decoder(block.data.data(), block.data.size(), block.base_ticks);
    schema::DecodedRecord record;
    REQUIRE(decoder.next(record));
    CHECK(record.header().kind == RecordKind::kNameInline);
    CHECK(record.words[1] == 3);
    REQUIRE(decoder.next(record));
    CHECK(record.words[1] == 30);
    CHECK_FALSE(decoder.next(record));
    CHECK_FALSE(decoder.damaged());
}

TEST_CASE("loss log: a range gets the losses that touch it, and the counters as they stood") {
    LossLog log;
    log.add({1, {0, 0}, 7, 10, 100, 200});
    log.add({1, {0, 0}, 7, 20, 300, 400});
    log.note(1, 100, {{1}, 0});
    log.note(1, 200, {{5}, 2});
    CHECK(log.within(0, 99).empty());
    CHECK(log.within(150, 250).size() == 1);
    CHECK(log.within(200, 300).size() == 2);
    CHECK(log.at(1, 50).losses[0] == 0);
    CHECK(log.at(1, 199).losses[0] == 1);
    CHECK(log.at(1, 200).losses[0] == 5);
    CHECK(log.at(2, 200).losses[0] == 0);
    log.forget_before(250);
    CHECK(log.within(0, 1000).size() == 1);
    CHECK(log.at(1, 260).unknown_records == 2);
    CHECK(log.lost_total() == 20);
}
