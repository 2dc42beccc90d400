// Built with ThreadSanitizer: threads come and go on one lane and one agent after the other drains it, all on one mapping (across two
// TSan is blind), with nothing between them but the ring's own orders. What the threads hand on is plain memory, so that a lost order is a
// data race even where nothing goes wrong.
//
//     threads_stress [SECONDS] [SEED]
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "stress_lane.hpp"

using namespace ringside;
using namespace ringside::stress;

namespace {

constexpr int kThreads = 3;
constexpr int kMostRecords = 3000;
constexpr int kMostPasses = 2000;

/// Of the thread that has the lane, and of the agent once it is Released: plain, ordered by the lane's hand-over alone.
struct Handed {
    std::uint64_t tried = 0;  ///< by all generations
    std::uint64_t dropped = 0;
};

/// What the agents know, handed from one to the next through the tail alone.
struct Account {
    std::uint64_t kept = 0;
    std::uint64_t last = 0;  ///< number of the last record
    std::uint64_t generations = 0;
};

struct Stage {
    Lane lane;
    Handed handed;
    Account account;
    std::atomic<std::uint64_t> agent_stopped_at{~0ull};  ///< relaxed: its tail
    std::atomic<int> threads_left{kThreads};             ///< relaxed
    std::atomic<bool> stop{false};                       ///< relaxed
};

void job_thread(Stage& stage, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    while (!stage.stop.load(std::memory_order_relaxed)) {
        if (!schema::claim_lane(stage.lane.header)) {
            std::this_thread::yield();
            continue;
        }
        schema::RingWriter writer(&stage.lane.header, stage.lane.room());
        const std::uint64_t records = random() % kMostRecords;
        for (std::uint64_t i = 0; i < records; ++i) {
            put(stage.lane, writer, ++stage.handed.tried,
                1 + static_cast<std::uint32_t>(random() % schema::kMaxRecordCells));
            if (random() % 16 == 0) std::this_thread::yield();
        }
        stage.handed.dropped = stage.lane.header.dropped.load(std::memory_order_relaxed);
        schema::release_lane(stage.lane.header);
    }
    stage.threads_left.fetch_sub(1, std::memory_order_relaxed);
}

/// A Released lane that is empty: everything that was tried is here, or was dropped.
void finish(Stage& stage, schema::RingReader& reader, const schema::LaneLook& look) {
    equal("kept + lost", stage.account.kept + look.dropped, stage.handed.tried);
    equal("drops", look.dropped, stage.handed.dropped);
    equal("records", stage.lane.header.records.load(std::memory_order_relaxed), stage.account.kept);
    ++stage.account.generations;
    schema::recycle_lane(stage.lane.header, reader, look.state);
}

/// @return false: there will never be more
bool pass(Stage& stage, schema::RingReader& reader, Look& look) {
    const bool last = stage.threads_left.load(std::memory_order_relaxed) == 0;
    look_at(stage.lane, reader, look);
    if (look.changed_hands) return true;
    const schema::CellSpan& span = look.look.span;
    if (span.count == 0) {
        const bool released = schema::lane_state(look.look.state) == schema::LaneState::kReleased;
        if (released) finish(stage, reader, look.look);
        if (!released) std::this_thread::yield();
        return released || !last;
    }
    read_records(look.copy, span.count, span.position, [&](std::uint64_t number, std::uint64_t) {
        if (number <= stage.account.last) fail("a record's number", number, stage.account.last + 1);
        stage.account.last = number;
        ++stage.account.kept;
    });
    reader.release(span.count);
    return true;
}

/// Goes on where the agent before stopped, told by the tail and nothing else.
void agent(Stage& stage, std::uint64_t passes, bool& more) {
    auto look = std::make_unique<Look>();
    schema::RingReader reader(&stage.lane.header, stage.lane.reader_room());
    const std::uint64_t from = stage.agent_stopped_at.load(std::memory_order_relaxed);
    if (from != ~0ull) equal("the next agent's tail", reader.tail(), from);
    for (std::uint64_t i = 0; more && i < passes; ++i) more = pass(stage, reader, *look);
    stage.agent_stopped_at.store(reader.tail(), std::memory_order_relaxed);
}

}  // namespace

int main(int argc, char** argv) {
    const Arguments arguments(argc, argv);
    auto* stage = make_shared_memory<Stage>();
    std::mt19937_64 random(arguments.seed);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(job_thread, std::ref(*stage), random());
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(arguments.seconds);
    std::uint64_t agents = 0;
    for (bool more = true; more; ++agents) {
        if (std::chrono::steady_clock::now() > end)
            stage->stop.store(true, std::memory_order_relaxed);
        std::thread(agent, std::ref(*stage), 1 + random() % kMostPasses, std::ref(more)).join();
    }
    for (std::thread& thread : threads) thread.join();
    const schema::Drops drops = schema::load_drops(stage->lane.header);
    equal("kept + lost at the end", stage->account.kept + drops.count, stage->handed.tried);
    if (stage->account.kept == 0 || drops.count == 0 || agents < 2)
        fail("something to look at", 0, 1);
    std::printf("%llu tried = %llu kept + %llu lost; %llu threads' turns, %llu agents\n",
                static_cast<unsigned long long>(stage->handed.tried),
                static_cast<unsigned long long>(stage->account.kept),
                static_cast<unsigned long long>(drops.count),
                static_cast<unsigned long long>(stage->account.generations),
                static_cast<unsigned long long>(agents));
    return 0;
}
