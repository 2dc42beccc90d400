// What mpi_overhead.py measures: one rank that sends to itself. It reads a kind a line, does a block of it, and says nanoseconds a call and what the probe
// of the core took beside it. The floor: two reads of the ticks and one record of 64 bytes, published into a private ring as long as a lane.
//
//     calls CALLS
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>
#include <x86intrin.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "schema/ticks.hpp"
#include "tests/bench/core_probe.hpp"

namespace {

constexpr int kTurns = 5;  // of posting what the timed calls meet
constexpr std::uint64_t kRecords = 4096;

struct Record {
    std::uint64_t words[8];
};

std::int64_t now_ns() {
    return ringside::schema::read_clock(CLOCK_MONOTONIC).value;
}

class Block {
public:
    explicit Block(int calls) : calls_(calls), in_(calls), out_(calls, 1), requests_(calls) {
        const std::size_t bytes = kRecords * sizeof(Record) + 4096;
        void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (memory == MAP_FAILED) abort();
        head_ = static_cast<std::atomic<std::uint64_t>*>(memory);
        ring_ = reinterpret_cast<Record*>(static_cast<char*>(memory) + 4096);
    }

    std::int64_t run(const char* kind) {
        std::int64_t took = 0;
        for (int turn = 0; turn < kTurns; ++turn) took += once(kind);
        return took;
    }

private:
    template <class Call>
    std::int64_t timed(Call call) {
        const std::int64_t begin = now_ns();
        for (int i = 0; i < calls_; ++i) call(i);
        return now_ns() - begin;
    }

    std::int64_t once(const char* kind) {
        const MPI_Comm self = MPI_COMM_SELF;
        if (strcmp(kind, "floor") == 0) return timed([&](int i) { floor(i); });
        if (strcmp(kind, "send") == 0) {
            for (int i = 0; i < calls_; ++i)
                MPI_Irecv(&in_[i], 1, MPI_LONG, 0, 0, self, &requests_[i]);
            const std::int64_t took =
                timed([&](int i) { MPI_Send(&out_[i], 1, MPI_LONG, 0, 0, self); });
            MPI_Waitall(calls_, requests_.data(), MPI_STATUSES_IGNORE);
            return took;
        }
        if (strcmp(kind, "recv") == 0) {
            for (int i = 0; i < calls_; ++i)
                MPI_Isend(&out_[i], 1, MPI_LONG, 0, 0, self, &requests_[i]);
            const std::int64_t took = timed(
                [&](int i) { MPI_Recv(&in_[i], 1, MPI_LONG, 0, 0, self, MPI_STATUS_IGNORE); });
            MPI_Waitall(calls_, requests_.data(), MPI_STATUSES_IGNORE);
            return took;
        }
        if (strcmp(kind, "sendrecv") == 0)
            return timed([&](int i) {
                MPI_Sendrecv(&out_[i], 1, MPI_LONG, 0, 0, &in_[i], 1, MPI_LONG, 0, 0, self,
                             MPI_STATUS_IGNORE);
            });
        return timed([&](int i) { MPI_Allreduce(&out_[i], &in_[i], 1, MPI_LONG, MPI_SUM, self); });
    }

    void floor(int i) {
        Record& record = ring_[position_ % kRecords];
        record.words[0] = 1;
        record.words[1] = __rdtsc();
        for (int word = 3; word < 8; ++word) record.words[word] = static_cast<std::uint64_t>(i);
        record.words[2] = __rdtsc();
        head_->store(++position_, std::memory_order_release);
    }

    int calls_;
    std::vector<long> in_, out_;
    std::vector<MPI_Request> requests_;
    std::atomic<std::uint64_t>* head_;
    Record* ring_;
    std::uint64_t position_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    MPI_Init(&argc, &argv);
    const int calls = atoi(argv[1]);
    Block block(calls), warm_up(3);
    printf("%d\n", getpid());
    fflush(stdout);
    char kind[32];
    while (fgets(kind, sizeof kind, stdin) != nullptr) {
        kind[strcspn(kind, "\n")] = '\0';
        warm_up.run(kind);  // the thread's lane, the names
        const double before = ringside::bench::probe_core();
        const std::int64_t took = block.run(kind);
        const double after = ringside::bench::probe_core();
        printf("%.3f %.4f\n", static_cast<double>(took) / (calls * kTurns),
               before > after ? before : after);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
