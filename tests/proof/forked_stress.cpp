// A job's process and an agent's on one shared mapping, both killed anywhere: rounds of a producer that is killed in the middle of its
// records, and of consumers that are killed and replaced while it writes. At the end of each round every record that was tried is kept
// once, whole and in order, or counted as lost; only the one that the producer died in may be either.
//
//     forked_stress [SECONDS] [SEED]
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>

#include "stress_lane.hpp"

using namespace ringside;
using namespace ringside::stress;

namespace {

constexpr std::uint64_t kMostRecords = 30000;  ///< of a round, before the kill
constexpr std::uint64_t kMostPasses = 400;     ///< of a consumer, before the kill

/// What a consumer has taken, all of one instant: two places in turn, and which of them counts.
struct Taken {
    std::uint64_t until = 0;  ///< position: what lies before it is not taken again
    std::uint64_t kept = 0;
    std::uint64_t last = 0;
};

struct Stage {
    Lane lane;
    Taken taken[2];
    std::atomic<std::uint32_t> turn{0};
    std::atomic<std::uint64_t> started{0};   ///< records that were begun
    std::atomic<std::uint64_t> finished{0};  ///< ... and committed or dropped
    std::atomic<std::uint64_t> passes{0};
    std::atomic<bool> producer_dead{false};
    std::atomic<bool> drained{false};
};

[[noreturn]] void produce(Stage& stage, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    schema::RingWriter writer(&stage.lane.header, stage.lane.room());
    for (std::uint64_t number = 1;; ++number) {
        const auto cells = 1 + static_cast<std::uint32_t>(random() % schema::kMaxRecordCells);
        stage.started.store(number, std::memory_order_release);
        put(stage.lane, writer, number, cells);
        stage.finished.store(number, std::memory_order_release);
        if (random() % 8 == 0) sched_yield();
    }
}

/// What it has in hand is written down before its cells are freed, as a dump's positions are: who takes over after a kill between the two
/// finds the records once more, and knows them.
void consume(Stage& stage) {
    static Look look;
    schema::RingReader reader(&stage.lane.header, stage.lane.reader_room());
    for (;;) {
        const bool dead = stage.producer_dead.load(std::memory_order_acquire);
        look_at(stage.lane, reader, look);
        const schema::CellSpan& span = look.look.span;
        if (span.count == 0 && dead) break;
        const std::uint32_t turn = stage.turn.load(std::memory_order_acquire);
        Taken taken = stage.taken[turn];
        read_records(look.copy, span.count, span.position,
                     [&](std::uint64_t number, std::uint64_t position) {
                         if (position < taken.until) return;
                         if (number <= taken.last)
                             fail("a record's number", number, taken.last + 1);
                         taken.last = number;
                         ++taken.kept;
                     });
        taken.until = std::max<std::uint64_t>(taken.until, span.position + span.count);
        stage.taken[1 - turn] = taken;
        stage.turn.store(1 - turn, std::memory_order_release);
        reader.release(span.count);
        stage.passes.fetch_add(1, std::memory_order_relaxed);
        if (span.count == 0) sched_yield();
    }
    stage.drained.store(true, std::memory_order_release);
}

template <class Role>
pid_t start(Role role) {
    const pid_t child = fork();
    if (child < 0) {
        std::perror("fork");
        std::exit(1);
    }
    if (child == 0) {
        role();
        std::_Exit(0);
    }
    return child;
}

/// @return whether it ended by itself, in good order
bool ended_well(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) std::exit(1);  // it has said why
    return WIFEXITED(status);
}

bool ends_by_now(pid_t child) {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == child;
}

struct Totals {
    std::uint64_t rounds = 0, tried = 0, kept = 0, lost = 0, consumers = 0, torn = 0;
};

void check_account(const Stage& stage, Totals& totals) {
    const Taken& taken = stage.taken[stage.turn.load(std::memory_order_acquire)];
    const std::uint64_t dropped = schema::load_drops(stage.lane.header).count;
    const std::uint64_t started = stage.started.load(std::memory_order_acquire);
    const std::uint64_t finished = stage.finished.load(std::memory_order_acquire);
    const std::uint64_t accounted = taken.kept + dropped;
    if (accounted < finished || accounted > started) fail("kept + lost", accounted, finished);
    const std::uint64_t said = stage.lane.header.records.load(std::memory_order_relaxed);
    if (said < taken.kept || said > taken.kept + 1) fail("the lane's own count", said, taken.kept);
    equal("the tail", stage.lane.header.tail.load(), stage.lane.header.committed.load());
    ++totals.rounds;
    totals.tried += started;
    totals.kept += taken.kept;
    totals.lost += dropped;
    totals.torn += started - accounted;
}

void round(std::mt19937_64& random, Totals& totals) {
    auto* stage = make_shared_memory<Stage>();
    const std::uint64_t seed = random(), records = 1 + random() % kMostRecords;
    const pid_t producer = start([&] { produce(*stage, seed); });
    bool alive = true;
    while (!stage->drained.load(std::memory_order_acquire)) {
        const pid_t consumer = start([&] { consume(*stage); });
        ++totals.consumers;
        const std::uint64_t until =
            stage->passes.load(std::memory_order_relaxed) + random() % kMostPasses;
        while (!ends_by_now(consumer) &&
               (!alive || stage->passes.load(std::memory_order_relaxed) < until)) {
            if (alive && stage->finished.load(std::memory_order_acquire) >= records) {
                kill(producer, SIGKILL);
                ended_well(producer);
                alive = false;
                stage->producer_dead.store(true, std::memory_order_release);
            }
            sched_yield();
        }
        kill(consumer, SIGKILL);
        ended_well(consumer);
    }
    check_account(*stage, totals);
    munmap(stage, sizeof *stage);
}

}  // namespace

int main(int argc, char** argv) {
    const Arguments arguments(argc, argv);
    std::mt19937_64 random(arguments.seed);
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(arguments.seconds);
    Totals totals;
    while (std::chrono::steady_clock::now() < end) round(random, totals);
    std::printf(
        "%llu rounds, %llu consumers: %llu tried = %llu kept + %llu lost + %llu that their process "
        "died in\n",
        static_cast<unsigned long long>(totals.rounds),
        static_cast<unsigned long long>(totals.consumers),
        static_cast<unsigned long long>(totals.tried), static_cast<unsigned long long>(totals.kept),
        static_cast<unsigned long long>(totals.lost), static_cast<unsigned long long>(totals.torn));
    return 0;
}
