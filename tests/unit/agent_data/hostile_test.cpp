// Segments whose every word may be a lie: nothing crashes, nothing is believed, everything is counted.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "agent/attach/job_directory.hpp"
#include "agent/drain/process_drainer.hpp"
#include "tests/unit/agent_data/fake_job.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;
using schema::RecordHeader;
using schema::RecordKind;

namespace {

constexpr TickRange kAll{0, ~0ull};

struct Rig {
    TemporaryDirectory directory;
    FakeSegment fake{directory.path(), {.bytes = 2ull << 20}};
    FileHandle handle{::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    std::unique_ptr<DrainBuffers> buffers = std::make_unique<DrainBuffers>();

    schema::Result<std::unique_ptr<MappedSegment>> open() {
        return MappedSegment::open(handle.get(), directory.path(), {kForeignNamespace, 100, 1});
    }
    std::unique_ptr<MappedSegment> must_open() {
        auto segment = open();
        REQUIRE(segment);
        REQUIRE(*segment != nullptr);
        return std::move(*segment);
    }
};

std::uint64_t drain_once(Rig& rig, ProcessDrainer& drainer) {
    const auto cells = drainer.drain(*rig.buffers, kAll, ticks_now(), true).cells;
    drainer.seal(*rig.buffers, kAll, ticks_now(), true);
    drainer.settle_all(*rig.buffers, true, ticks_now());
    return cells;
}

}  // namespace

TEST_CASE("segment: another layout is refused with what it has, what we read and what to do") {
    Rig rig;
    rig.fake.header()->layout = 9;
    const auto segment = rig.open();
    REQUIRE_FALSE(segment);
    CHECK(segment.error().code == schema::ErrorCode::kRefused);
    CHECK(segment.error().message.find("layout 9, this agent reads 2 to 3; run the agent") !=
          std::string::npos);
}

TEST_CASE("segment: a wrong magic, machine, size or identity is refused") {
    Rig rig;
    schema::SegmentHeader& header = *rig.fake.header();
    SUBCASE("magic") {
        header.magic ^= 1;
    }
    SUBCASE("machine") {
        header.mark = 0x02016486;
    }
    SUBCASE("size beyond the file") {
        header.size_bytes = 1ull << 40;
    }
    SUBCASE("size below the tables") {
        header.size_bytes = 4096;
    }
    SUBCASE("pid") {
        header.pid = 5;
    }
    SUBCASE("namespace") {
        header.pid_namespace = 8;
    }
    CHECK_FALSE(rig.open());
}

TEST_CASE("segment: one that is still being made is neither refused nor mapped") {
    TemporaryDirectory directory;
    const FakeSegment fake(directory.path(), {.ready = false});
    const FileHandle handle(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const auto segment =
        MappedSegment::open(handle.get(), directory.path(), {kForeignNamespace, 100, 1});
    REQUIRE(segment);
    CHECK(*segment == nullptr);
}

TEST_CASE("segment: an empty file is one that is being made") {
    TemporaryDirectory directory;
    const FileHandle file(::open(directory.sub("7.1.1").c_str(), O_RDWR | O_CREAT, 0600));
    const FileHandle handle(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const auto segment = MappedSegment::open(handle.get(), directory.path(), {7, 1, 1});
    REQUIRE(segment);
    CHECK(*segment == nullptr);
}

TEST_CASE("segment: a symbolic link on a segment's name is not followed") {
    Rig rig;
    REQUIRE(::symlink(rig.fake.path().c_str(), rig.directory.sub("7.101.1").c_str()) == 0);
    const auto segment =
        MappedSegment::open(rig.handle.get(), rig.directory.path(), {kForeignNamespace, 101, 1});
    REQUIRE_FALSE(segment);
    CHECK(segment.error().message.find("symbolic link") != std::string::npos);
}

TEST_CASE("segment: lanes that lie where none can are refused, once, and the others drained") {
    Rig rig;
    FakeLane& good = rig.fake.add_lane(64);
    rig.fake.add_lane(64);
    auto* entry = rig.fake.at<schema::LaneEntry>(schema::kLaneTableOffset) + 1;
    SUBCASE("offset beyond the file") {
        entry->offset.store(1ull << 50);
    }
    SUBCASE("offset wraps") {
        entry->offset.store(~0ull - 4095);
    }
    SUBCASE("offset in the header") {
        entry->offset.store(4096);
    }
    SUBCASE("offset not on a page") {
        entry->offset.store(schema::kLanesOffset + 8);
    }
    SUBCASE("capacity zero") {
        entry->capacity_cells.store(0);
    }
    SUBCASE("capacity no power of two") {
        entry->capacity_cells.store(100);
    }
    SUBCASE("capacity beyond the file") {
        entry->capacity_cells.store(1u << 31);
    }
    const auto segment = rig.must_open();
    ProcessDrainer drainer(*segment);
    drainer.start(0);
    good.range(0, 1, 2);
    drain_once(rig, drainer);
    drain_once(rig, drainer);
    CHECK(drainer.kept() == 1);
    CHECK(drainer.violations() == 1);
}

TEST_CASE("lane: positions that can't be right quarantine it; the other lanes go on") {
    Rig rig;
    FakeLane& bad = rig.fake.add_lane(64);
    FakeLane& good = rig.fake.add_lane(64);
    const auto segment = rig.must_open();
    ProcessDrainer drainer(*segment);
    drainer.start(0);
    bad.range(0, 1, 2);
    drain_once(rig, drainer);
    SUBCASE("before the tail") {
        bad.header()->committed.store(0);
    }
    SUBCASE("beyond the capacity") {
        bad.header()->committed.store(1000);
    }
    SUBCASE("far beyond") {
        bad.header()->committed.store(~0ull);
    }
    good.range(0, 1, 2);
    drain_once(rig, drainer);
    bad.header()->committed.store(2);
    good.range(0, 3, 4);
    drain_once(rig, drainer);
    CHECK(drainer.kept() == 3);
    CHECK(drainer.violations() == 1);
}

TEST_CASE(
    "lane: a record whose cells can't be right quarantines it, and what it wrote counts as lost") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(64);
    const auto segment = rig.must_open();
    ProcessDrainer drainer(*segment);
    drainer.start(0);
    lane.range(0, 1, 2);
    std::uint8_t cells = 0;
    SUBCASE("no cells") {
        cells = 0;
    }
    SUBCASE("more than a record has") {
        cells = 9;
    }
    SUBCASE("more than were committed") {
        cells = 8;
    }
    schema::Cell cell{};
    cell.words[0] = RecordHeader{RecordKind::kRange, cells, 0, {}}.pack();
    lane.put(&cell, 1, 5);
    lane.range(0, 3, 4);
    drain_once(rig, drainer);
    CHECK(drainer.kept() == 1);
    CHECK(drainer.lost() == 2);
    CHECK(drainer.violations() == 1);
}

TEST_CASE(
    "lane: a record that is too short for its kind is lost and counted, those around it are kept") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(64);
    const auto segment = rig.must_open();
    ProcessDrainer drainer(*segment);
    drainer.start(0);
    lane.range(0, 1, 2);
    schema::Cell cell{};
    cell.words[0] = RecordHeader{RecordKind::kRpcBegin, 1, 0, {}}.pack();
    lane.put(&cell, 1, 5);
    lane.range(0, 3, 4);
    drain_once(rig, drainer);
    CHECK(drainer.kept() == 2);
    CHECK(drainer.lost() == 1);
    CHECK(drainer.violations() == 1);
    CHECK(drainer.halves().halves().empty());
}

TEST_CASE("lane: a count of drops that can't be right is a violation, and nothing is added up") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(64);
    const auto segment = rig.must_open();
    ProcessDrainer drainer(*segment);
    drainer.start(0);
    lane.range(0, 1, 2);
    lane.header()->dropped.store(5);
    drain_once(rig, drainer);
    SUBCASE("far too many") {
        lane.header()->dropped.store(~0ull);
    }
    SUBCASE("fewer than before") {
        lane.header()->dropped.store(4);
    }
    drain_once(rig, drainer);
    CHECK(drainer.kept() == 1);
    CHECK(drainer.lost() == 5);
    CHECK(drainer.violations() == 1);
}

TEST_CASE("names: ids, offsets and lengths that can't be right give no name and are counted") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(64);
    auto* entry = rig.fake.at<schema::NameEntry>(schema::kNamesOffset);
    std::uint32_t id = rig.fake.intern("name");
    SUBCASE("id beyond the table") {
        id = 8193;
    }
    SUBCASE("not ready") {
        entry->state.store(1);
    }
    SUBCASE("length") {
        entry->length.store(60000);
    }
    SUBCASE("offset") {
        entry->offset.store(schema::kNameBytes - 2);
    }
    SUBCASE("offset wraps") {
        entry->offset.store(~0u);
    }
    SUBCASE("attribute beyond the table") {
        entry->attribute.store(2000);
    }
    const auto segment = rig.must_open();
    ProcessDrainer drainer(*segment);
    drainer.start(0);
    lane.range(id, 1, 2);
    const bool readable = entry->attribute.load() != 0;
    drain_once(rig, drainer);
    CHECK(drainer.kept() == 1);
    CHECK(drainer.violations() == 1);
    NamesBatch names;
    drainer.names().take(names);
    const bool in_table = id <= schema::kNameEntries;
    REQUIRE(names.names.size() == (in_table ? 1 : 0));
    if (!in_table) return;
    // What a record mentions is in the dump, whatever became of its text.
    CHECK(names.names[0].id == id);
    CHECK(names.names[0].text == (readable ? "name" : "<name lost>"));
    CHECK(names.names[0].attribute == 0);
}

TEST_CASE("segment: one that is truncated under the reader is broken, and the reader lives") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(1024);
    const auto segment = rig.must_open();
    ProcessDrainer drainer(*segment);
    drainer.start(0);
    for (std::uint64_t i = 0; i < 100; ++i) lane.range(0, i, i + 1);
    drain_once(rig, drainer);
    REQUIRE(::truncate(rig.fake.path().c_str(), 0) == 0);
    drain_once(rig, drainer);
    CHECK(segment->broken());
    CHECK(drainer.kept() == 100);
    CHECK(drainer.violations() >= 1);
    CHECK_FALSE(segment->facts());
    CHECK_FALSE(segment->set_selected(true));
}

TEST_CASE("segment: random words everywhere never crash the reader") {
    const std::uint32_t seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    for (int round = 0; round < 60; ++round) {
        Rig rig;
        for (int i = 0; i < 4; ++i) {
            FakeLane& lane = rig.fake.add_lane(256);
            for (std::uint64_t n = 0; n < 100; ++n) lane.range(1, n, n + 1);
        }
        rig.fake.intern("name");
        const auto segment = rig.must_open();
        ProcessDrainer drainer(*segment);
        drainer.start(0);
        for (int pass = 0; pass < 8; ++pass) {
            for (int i = 0; i < 200; ++i) {
                // Tables and lanes, a few interesting values among random ones.
                const std::uint64_t from = random() % 3 == 0 ? 16 : schema::kNamesOffset;
                const std::uint64_t word = from / 8 + random() % ((1 << 20) / 8);
                static constexpr std::uint64_t kValues[] = {0,          1,          ~0ull,
                                                            0xffffffff, 1ull << 63, 4096};
                rig.fake.at<std::uint64_t>(0)[word] =
                    random() % 2 == 0 ? kValues[random() % 6] : random();
            }
            drainer.drain(*rig.buffers, kAll, ticks_now(), true);
            drainer.seal(*rig.buffers, kAll, ticks_now(), pass % 2 == 0);
            NamesBatch names;
            drainer.names().take(names);
            drainer.settle_all(*rig.buffers, true, ticks_now());
            static_cast<void>(segment->facts());
        }
        for (const LaneAccount& account : drainer.accounts())
            CHECK(account.written() == account.kept + account.outside + account.lost);
    }
}

TEST_CASE("segment: words that a thread changes while they are read never crash the reader") {
    const std::uint32_t seed = std::random_device{}();
    CAPTURE(seed);
    Rig rig;
    for (int i = 0; i < 4; ++i) {
        FakeLane& lane = rig.fake.add_lane(256);
        for (std::uint64_t n = 0; n < 100; ++n) lane.range(1, n, n + 1);
    }
    rig.fake.intern("name");
    const auto segment = rig.must_open();
    std::atomic<bool> quit{false};
    std::thread mutator([&] {
        std::mt19937_64 random(seed);
        auto* words = rig.fake.at<std::atomic<std::uint64_t>>(0);
        const std::uint64_t first_lane = schema::kLanesOffset / 8;
        while (!quit) {
            // The lanes' headers and stacks most of the time, the tables otherwise; counts that are nearly right among the random ones.
            const std::uint64_t word = random() % 4 != 0
                                           ? first_lane + random() % 4 * 1536 + random() % 300
                                           : 16 + random() % (first_lane - 16);
            words[word].store(random() % 2 == 0 ? random() % 300 : random(),
                              std::memory_order_relaxed);
        }
    });
    // Lanes are quarantined soon: the next agent comes, as often as it takes. On a busy machine all rounds are over before the thread has its first
    // turn, so at least until one of its words was refused.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    const auto refused = [&] {
        return segment->violations() > 0 || std::chrono::steady_clock::now() > deadline;
    };
    for (int round = 0; round < 300 || !refused(); ++round) {
        ProcessDrainer drainer(*segment);
        drainer.start(0);
        for (int pass = 0; pass < 8; ++pass) {
            drainer.drain(*rig.buffers, kAll, ticks_now(), true);
            drainer.seal(*rig.buffers, kAll, ticks_now(), pass % 2 == 0);
            std::uint64_t held = 0;
            for (const Block& block : drainer.sealed()) {
                schema::BlockDecoder decoder(block.data.data(), block.data.size(),
                                             block.base_ticks);
                schema::DecodedRecord record;
                while (decoder.next(record)) {
                    const auto kind = record.header().kind;
                    held += kind != RecordKind::kPad && kind != RecordKind::kNameInline ? 1 : 0;
                }
                REQUIRE_FALSE(decoder.damaged());
            }
            const std::uint64_t before = drainer.kept();
            drainer.settle_all(*rig.buffers, true, ticks_now());
            REQUIRE(drainer.kept() - before == held);
            static_cast<void>(segment->facts());
        }
    }
    quit = true;
    mutator.join();
    CHECK(segment->violations() > 0);
}
