// Lanes that start small and grow where the agent is late, within what the process and the node may have, and are small again once the
// agent has given them back.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <barrier>
#include <thread>
#include <vector>

#include "hooks.hpp"
#include "schema/lane_life.hpp"

using namespace ringside;
using schema::RecordKind;
using test::mark;
using test::ReadRecord;
using test::Sandbox;
using test::SegmentView;

namespace {

constexpr std::uint32_t kFirstCells = 128;

void set_sizes(Sandbox& box, std::uint32_t first_kib, std::uint32_t most_kib) {
    box.control().first_lane_kib.store(first_kib);
    box.control().most_lane_kib.store(most_kib);
    box.set_capture(true);
}

/// Marks `from` .. `to` - 1 are there in order, at positions one after the other; pads take none of a mark's one cell.
void expect_marks(const std::vector<ReadRecord>& records, std::uint64_t from, std::uint64_t to) {
    EXPECT(records.size() == to - from);
    for (std::uint64_t i = 0; i < records.size(); ++i) {
        EXPECT(records[i].header.kind == RecordKind::kMark);
        EXPECT(records[i].words[2] == from + i);
        EXPECT(records[i].position == records[0].position + i);
    }
}

std::uint64_t blocks_of(const std::string& path) {
    struct stat status {};
    EXPECT(stat(path.c_str(), &status) == 0);
    return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

/// As an agent makes it.
schema::BudgetPage& make_budget_page(const Sandbox& box) {
    const std::string path = box.job_directory() + "/" + schema::kBudgetFileName;
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(ftruncate(file, sizeof(schema::BudgetPage)) == 0);
    void* memory =
        mmap(nullptr, sizeof(schema::BudgetPage), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    REQUIRE(memory != MAP_FAILED);
    auto& page = *static_cast<schema::BudgetPage*>(memory);
    page.magic = schema::kBudgetMagic;
    return page;
}

}  // namespace

TEST_CASE("growth: a lane that nobody drains doubles, and keeps every record at its position") {
    Sandbox box;
    set_sizes(box, 4, 64);
    box.run([&] {
        EXPECT(box.load());
        mark(0);
        const SegmentView view(box.segments()[0]);
        EXPECT(view.lane(0).capacity_cells.load() == kFirstCells);
        EXPECT(view.entry(0).ring_count.load() == 5);
        // What is unread may take as much as the largest ring: then it is full.
        constexpr std::uint64_t kMost = kFirstCells << 4;
        for (std::uint64_t i = 1; i < kMost; ++i) {
            mark(i);
            // Never before it must.
            EXPECT(i < kFirstCells << view.lane(0).ring.load());
            EXPECT(view.lane(0).ring.load() == 0 || i >= kFirstCells
                                                             << (view.lane(0).ring.load() - 1));
        }
        EXPECT(view.lane(0).ring.load() == 4);
        EXPECT(view.lane(0).dropped.load() == 0);
        for (int i = 0; i < 3; ++i) mark(0);
        EXPECT(view.lane(0).dropped.load() == 3);
        expect_marks(view.drain(0), 0, kMost);
        EXPECT(view.loss(schema::Loss::kRefusedByProcess) == 0);
    });
}

TEST_CASE("growth: wherever it is full a lane grows, and goes on round its larger ring") {
    for (std::uint64_t before = 0; before < 3 * kFirstCells; before += 37) {
        Sandbox box;
        set_sizes(box, 4, 16);
        box.run([&] {
            EXPECT(box.load());
            mark(0);
            const SegmentView view(box.segments()[0]);
            std::uint64_t next = 1;
            for (; next < before; ++next) {
                mark(next);
                if (next % 100 == 0) view.drain(0);
            }
            view.drain(0);
            const std::uint64_t begin = next;
            for (; next < begin + 4 * kFirstCells; ++next) mark(next);
            EXPECT(view.lane(0).ring.load() == 2);
            expect_marks(view.drain(0), begin, next);
            for (int round = 0; round < 20; ++round) {
                const std::uint64_t from = next;
                for (; next < from + 300; ++next) mark(next);
                expect_marks(view.drain(0), from, next);
            }
            EXPECT(view.lane(0).dropped.load() == 0);
        });
    }
}

TEST_CASE("growth: a lane that is drained in time stays as small as it began") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        mark(0);
        const SegmentView view(box.segments()[0]);
        EXPECT(view.lane(0).capacity_cells.load() * schema::kCellBytes == 256 * 1024);
        const std::uint64_t first = blocks_of(box.segments()[0]);
        EXPECT(first < 600 * 1024);
        for (std::uint64_t i = 1; i < 100000; ++i) {
            mark(i);
            if (i % 5000 == 0) view.drain(0);
        }
        EXPECT(view.lane(0).dropped.load() == 0);
        EXPECT(blocks_of(box.segments()[0]) == first);
        EXPECT(view.header().real_bytes.load() <= first);
    });
}

TEST_CASE(
    "growth: what the process's budget refuses is dropped and counted, and the lane goes on as it "
    "is") {
    Sandbox box;
    set_sizes(box, 4, 64);
    box.run([&] {
        EXPECT(box.load());
        mark(0);
        const SegmentView view(box.segments()[0]);
        // One doubling, and not two.
        box.control().process_budget_bytes.store(view.header().real_bytes.load() + 8192 + 100);
        for (std::uint64_t i = 1; i < 2 * kFirstCells + 10; ++i) mark(i);
        EXPECT(view.lane(0).ring.load() == 1);
        EXPECT(view.lane(0).dropped.load() == 10);
        EXPECT(view.loss(schema::Loss::kRefusedByProcess) == 1);
        EXPECT(view.loss(schema::Loss::kLaneRefused) == 0);
        expect_marks(view.drain(0), 0, 2 * kFirstCells);
        mark(7);
        EXPECT(view.drain(0).size() == 2);  // the context again, and the mark
        // Asked for again after a while.
        box.control().process_budget_bytes.store(0);
        for (std::uint64_t i = 0; i < 4000; ++i) mark(i);
        EXPECT(view.lane(0).ring.load() == 4);
    });
}

TEST_CASE("growth: all processes of a node together stay within its budget") {
    Sandbox box;
    set_sizes(box, 4, 1024);
    schema::BudgetPage& budget = make_budget_page(box);
    // Names and a first lane take 200 KiB of each; the last one finds some 300 left.
    constexpr std::uint64_t kBudget = 2220 << 10;
    constexpr std::uint64_t kRecords = 40000;
    box.control().node_budget_bytes.store(kBudget);
    std::uint64_t real = 0;
    for (int i = 0; i < 3; ++i) {
        const pid_t pid = box.run([&] {
            EXPECT(box.load());
            for (std::uint64_t n = 0; n < kRecords; ++n) mark(n);
        });
        const SegmentView view(box.segment_of(pid));
        CHECK(view.loss(schema::Loss::kRefusedByNode) > 0);
        real += view.header().real_bytes.load();
        CHECK(budget.taken_bytes.load() == real);
        CHECK(real <= kBudget);
        CHECK(view.lane(0).records.load() + view.lane(0).dropped.load() == kRecords);
    }
    CHECK(real > kBudget - (100 << 10));
    munmap(&budget, sizeof budget);
}

TEST_CASE("growth: a lane that was given back begins small again, where the last thread stopped") {
    Sandbox box;
    set_sizes(box, 4, 64);
    box.run([&] {
        EXPECT(box.load());
        std::thread([] {
            for (std::uint64_t i = 0; i < 1000; ++i) mark(i);
        }).join();
        const SegmentView view(box.segments()[0]);
        schema::LaneHeader& lane = view.lane(0);
        EXPECT(lane.ring.load() == 3);
        auto* cells = reinterpret_cast<const schema::Cell*>(&lane + 1);
        schema::RingReader reader(&lane, {cells, kFirstCells, 5, lane.rings});
        while (const std::uint32_t count = reader.poll().count) reader.release(count);
        EXPECT(reader.tail() == 1000);
        schema::recycle_lane(lane, reader, lane.state.load());
        std::thread([] {
            for (std::uint64_t i = 0; i < 500; ++i) mark(i);
        }).join();
        EXPECT(view.header().lanes_in_use.load() == 1);
        EXPECT(lane.ring.load() == 2);
        EXPECT(lane.dropped.load() == 0);
        const auto records = view.drain(0);
        EXPECT(records[0].position == 1000);
        expect_marks(records, 0, 500);
    });
}

TEST_CASE("growth: more than a thousand threads at once have a lane each") {
    Sandbox box;
    set_sizes(box, 4, 4096);
    box.run([&] {
        EXPECT(box.load());
        constexpr std::uint32_t kThreads = 1100;
        std::barrier all(kThreads);
        std::vector<std::thread> threads;
        for (std::uint32_t i = 0; i < kThreads; ++i) {
            threads.emplace_back([&, i] {
                mark(i);
                all.arrive_and_wait();  // nobody leaves before all have theirs
            });
        }
        for (std::thread& thread : threads) thread.join();
        const SegmentView view(box.segments()[0]);
        EXPECT(view.header().lanes_in_use.load() == kThreads);
        EXPECT(view.loss(schema::Loss::kLaneRefused) == 0);
        std::vector<bool> seen(kThreads);
        for (std::uint32_t i = 0; i < kThreads; ++i) {
            const auto records = view.drain(i);
            EXPECT(records.size() == 1);
            seen[records[0].words[2]] = true;
        }
        for (const bool one : seen) EXPECT(one);
    });
}

TEST_CASE("segment: where the process's limits leave no room for a large one, a small one") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        const rlimit limit{1ull << 30, 1ull << 30};
        EXPECT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        EXPECT(box.load());
        for (std::uint64_t i = 0; i < 20000; ++i) mark(i);
        EXPECT(blocks_of(box.segments()[0]) > 512 * 1024);
        const SegmentView view(box.segments()[0]);
        EXPECT(view.header().size_bytes == schema::kSmallSegmentBytes);
        EXPECT(view.entry(0).ring_count.load() == 2);
        EXPECT(view.drain(0).size() == 16384);
    });
}
