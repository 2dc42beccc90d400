// Lanes of several rings, as the agent sees them: drained through, their memory taken back, their words not believed; and segments of the
// layout before, which have one ring a lane.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "agent/attach/budget_file.hpp"
#include "agent/drain/process_drainer.hpp"
#include "schema/block_codec.hpp"
#include "schema/lane_life.hpp"
#include "tests/unit/agent_data/fake_job.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;

namespace {

constexpr std::uint32_t kFirst = 128;  // cells: a page
constexpr std::uint32_t kRings = 4;

struct Rig {
    TemporaryDirectory directory;
    FakeSegment fake;
    FileHandle handle{::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    std::unique_ptr<MappedSegment> segment;
    std::unique_ptr<ProcessDrainer> drainer;
    std::unique_ptr<DrainBuffers> buffers = std::make_unique<DrainBuffers>();
    std::uint64_t written = 0;
    std::uint64_t read = 0;

    explicit Rig(const SegmentSpec& spec = {}) : fake(directory.path(), spec) {
        auto opened =
            MappedSegment::open(handle.get(), directory.path(), {kForeignNamespace, 100, 1});
        REQUIRE(opened);
        segment = std::move(*opened);
        REQUIRE(segment != nullptr);
        drainer = std::make_unique<ProcessDrainer>(*segment);
        drainer->start(0);
    }

    /// Ranges with numbers for begins; the lane grows where it must.
    void fill(FakeLane& lane, std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; ++i) {
            if (lane.writer().reserve(1) == nullptr) lane.grow();
            ++written;
            REQUIRE(lane.range(0, written, written));
        }
    }
    std::uint64_t drain() { return drainer->drain(*buffers, {0, ~0ull}, ticks_now(), true).cells; }
    /// All that is there, in order.
    void check_all() {
        while (drain() != 0) {
        }
        drainer->seal(*buffers, {0, ~0ull}, ticks_now(), false);
        for (const Block& block : drainer->sealed()) {
            schema::BlockDecoder decoder(block.data.data(), block.data.size(), block.base_ticks);
            schema::DecodedRecord record{};
            while (decoder.next(record)) CHECK(record.words[1] == ++read);
        }
        drainer->settle_all(*buffers, true, ticks_now());
        CHECK(read == written);
        CHECK(segment->violations() == 0);
    }
    std::uint64_t blocks() const {
        struct stat status {};
        REQUIRE(::fstat(segment->lock_descriptor(), &status) == 0);
        return static_cast<std::uint64_t>(status.st_blocks) * 512;
    }
};

}  // namespace

TEST_CASE("growth: a lane is drained through all its rings, wherever it grew") {
    for (std::uint64_t before = 0; before < 2 * kFirst; before += 19) {
        Rig rig;
        FakeLane& lane = rig.fake.add_lane(kFirst, kRings);
        for (std::uint64_t i = 0; i < before; ++i) {
            rig.fill(lane, 1);
            rig.drain();
        }
        // Unread in three rings at once, then round the largest.
        rig.fill(lane, kFirst + 100);
        rig.fill(lane, 3 * kFirst);
        CHECK(lane.header()->ring.load() == 3);
        rig.check_all();
        for (int round = 0; round < 5; ++round) {
            rig.fill(lane, 333);
            rig.check_all();
        }
    }
}

TEST_CASE("growth: the next agent goes on in the ring where the tail lies") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(kFirst, kRings);
    rig.fill(lane, kFirst - 5);
    rig.check_all();
    rig.fill(lane, 3 * kFirst);
    CHECK(lane.header()->ring.load() == 2);
    rig.drainer = std::make_unique<ProcessDrainer>(*rig.segment);
    rig.drainer->start(0);
    rig.check_all();
}

TEST_CASE(
    "growth: memory of rings that the thread has left comes back, and all but the first ring's "
    "with the lane") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(kFirst, 6);
    const std::uint64_t before = rig.blocks();
    rig.fill(lane, kFirst << 4);
    REQUIRE(lane.header()->ring.load() == 4);
    const std::uint64_t cells = schema::ring_offset(kFirst, 5) - kFirst;
    rig.fake.header()->real_bytes.store(cells * schema::kCellBytes + 5);
    const std::uint64_t full = rig.blocks();
    CHECK(full >= before + cells * schema::kCellBytes / 2);
    rig.check_all();
    const std::uint64_t newest = schema::ring_cells(kFirst, 4) * schema::kCellBytes;
    CHECK(rig.segment->real_bytes() == newest + 5);
    CHECK(rig.blocks() < full);
    CHECK(rig.segment->collect_taken_back() == cells * schema::kCellBytes - newest);
    schema::release_lane(*lane.header());
    rig.drain();
    rig.drainer->settle_all(*rig.buffers, true, ticks_now());
    CHECK(schema::lane_state(lane.header()->state.load()) == schema::LaneState::kFree);
    CHECK(lane.header()->ring.load() == 0);
    CHECK(rig.segment->real_bytes() == 5);
    CHECK(rig.segment->collect_taken_back() == newest);
    CHECK(rig.segment->violations() == 0);
}

TEST_CASE("growth: rings that a lane can't have quarantine it") {
    Rig rig;
    FakeLane& lane = rig.fake.add_lane(kFirst, kRings);
    rig.fill(lane, 10);
    rig.drain();
    rig.fill(lane, 200);
    schema::LaneHeader& header = *lane.header();
    SUBCASE("one too many") {
        header.ring.store(kRings);
    }
    SUBCASE("any number") {
        header.ring.store(0xffffffffu);
    }
    SUBCASE("one that begins before the tail") {
        header.rings[1].from.store(5);
    }
    SUBCASE("one that begins beyond the ring before") {
        header.rings[1].from.store(1000);
    }
    rig.drain();
    CHECK(rig.segment->violations() == 1);
    CHECK(rig.drain() == 0);
}

TEST_CASE(
    "growth: an entry with more rings than there may be, or than the file has room for, yields no "
    "lane") {
    Rig rig;
    rig.fake.add_lane(kFirst, kRings);
    auto* entry = rig.fake.at<schema::LaneEntry>(schema::kLaneTableOffset);
    entry->ring_count.store(schema::kMostRings + 1);
    CHECK_FALSE(rig.segment->lane(0));
    entry->ring_count.store(schema::kMostRings);  // 16 MiB, of a file of 8
    CHECK_FALSE(rig.segment->lane(0));
    entry->ring_count.store(kRings);
    CHECK(rig.segment->lane(0));
}

TEST_CASE("segment: layout 2 is read: lanes of one ring, right behind 1024 entries") {
    Rig rig(SegmentSpec{.layout = schema::kOldestSegmentLayout});
    FakeLane& lane = rig.fake.add_lane(kFirst);
    CHECK(lane.header() ==
          rig.fake.at<schema::LaneHeader>(schema::lanes_offset(schema::kOldestSegmentLayout)));
    // What was reserved then says nothing.
    rig.fake.at<schema::LaneEntry>(schema::kLaneTableOffset)->ring_count.store(77);
    for (int round = 0; round < 10; ++round) {
        for (int i = 0; i < 100; ++i) {
            ++rig.written;
            REQUIRE(lane.range(0, rig.written, rig.written));
        }
        rig.check_all();
    }
    CHECK_FALSE(rig.segment->lane(schema::kMaxLanesOfLayout2));
    rig.fake.header()->lane_bytes_used.store(12345);
    CHECK(rig.segment->real_bytes() == 12345);
}

TEST_CASE(
    "budget: the page is made once, counts down to 0 and no further, and is put right where it "
    "stands still") {
    TemporaryDirectory directory;
    const FileHandle handle(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    auto budget = BudgetFile::open(handle.get(), directory.path());
    REQUIRE(budget);
    CHECK(budget->taken() == 0);
    budget->correct(0, 1000);
    CHECK(budget->taken() == 1000);
    budget->correct(999, 5);
    CHECK(budget->taken() == 1000);
    auto again = BudgetFile::open(handle.get(), directory.path());
    REQUIRE(again);
    CHECK(again->taken() == 1000);
    again->take_off(400);
    CHECK(budget->taken() == 600);
    again->take_off(~0ull);
    CHECK(budget->taken() == 0);
}
