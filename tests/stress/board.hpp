// What all processes of the stress share with the test that drives them: one file, mapped by each. In it, who shall do what, and a log of every
// record that was tried, with the time right before it. A record's own time thus lies between its entry and the thread's next one: enough to
// say of each record whether it belongs into a capture, exactly.
#pragma once

#include <fcntl.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "schema/ticks.hpp"

namespace ringside::stress {

/// Instead of a record's number: a thread's first entry (ticks: its pid), and one that says that it tries nothing for now.
inline constexpr std::uint32_t kBegins = 0xfffffffe, kRests = 0xffffffff;

struct Entry {
    std::uint32_t thread;  ///< 0: its writer was killed before it was whole
    std::uint32_t number;
    std::uint64_t ticks;
};

/// stress.py writes `round`, `capacity` and `next`, and reads all of it.
struct Board {
    std::atomic<std::uint32_t> round;    ///< 0: rest; 1: go on; 2: end
    std::atomic<std::uint32_t> resting;  ///< how many of those that rest do
    std::atomic<std::uint32_t> threads;  ///< the last number that was given
    std::uint32_t capacity;              ///< entries
    std::atomic<std::uint64_t> next;     ///< entry to be written
    std::atomic<std::uint64_t> lives;    ///< processes that have recorded
    Entry log[1];
};
static_assert(offsetof(Board, capacity) == 12 && offsetof(Board, next) == 16 &&
              offsetof(Board, lives) == 24 && offsetof(Board, log) == 32 && sizeof(Entry) == 16);

/// @param path  made by the test
inline Board* map_board(const char* path) {
    const int file = ::open(path, O_RDWR | O_CLOEXEC);
    const off_t bytes = file < 0 ? 0 : ::lseek(file, 0, SEEK_END);
    void* const at = file < 0 ? MAP_FAILED
                              : ::mmap(nullptr, static_cast<std::size_t>(bytes),
                                       PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) {
        std::perror(path);
        std::_Exit(3);
    }
    ::close(file);
    return static_cast<Board*>(at);
}

/// One thread's records, numbered from 0: even ones are marks, odd ones ranges.
class Recorder {
public:
    explicit Recorder(Board* board)
        : board_(board),
          thread_(board->threads.fetch_add(1) + 1),
          state_(thread_ * 0x9e3779b97f4a7c15ull + 1) {
        write(kBegins, static_cast<std::uint64_t>(::getpid()));
    }

    /// Calls `mark(payload)` or `range(payload)` for each of `count` records; none any more once the log is full.
    /// @return whether all of them were made
    template <typename Mark, typename Range>
    bool record(std::uint32_t count, Mark mark, Range range) {
        for (std::uint32_t i = 0; i < count; ++i) {
            if (!write(number_, ticks())) return false;
            const std::uint64_t payload = std::uint64_t{thread_} << 32 | number_;
            if (number_++ % 2 == 0) {
                mark(payload);
            } else {
                range(payload);
            }
        }
        return true;
    }
    /// After the last record, for now or for ever.
    void rest() { write(kRests, ticks()); }

    std::uint32_t random(std::uint32_t below) {
        state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
        return static_cast<std::uint32_t>(state_ >> 33) % below;
    }

private:
    static std::uint64_t ticks() {
        static const schema::TicksSource kSource = schema::find_ticks_source();
        _mm_lfence();
        const std::uint64_t now = schema::read_ticks(kSource).value;
        _mm_lfence();
        return now;
    }
    bool write(std::uint32_t number, std::uint64_t ticks) {
        const std::uint64_t slot = board_->next.fetch_add(1, std::memory_order_relaxed);
        if (slot >= board_->capacity) return false;
        Entry& entry = board_->log[slot];
        entry.number = number;
        entry.ticks = ticks;
        // A killed writer's half entry has no thread.
        reinterpret_cast<std::atomic<std::uint32_t>&>(entry.thread)
            .store(thread_, std::memory_order_release);
        return true;
    }

    Board* board_;
    std::uint32_t thread_;
    std::uint32_t number_ = 0;
    std::uint64_t state_;
};

}  // namespace ringside::stress
