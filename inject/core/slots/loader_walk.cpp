#include "inject/core/slots/loader_walk.hpp"

#include <errno.h>

#include <atomic>
#include <cstdint>

#include "inject/core/kernel_calls.hpp"
#include "inject/core/start_data.hpp"

namespace ringside::inject {

namespace {

constexpr long kLookNs = 20'000;
constexpr std::uint32_t kMostLooks = 2500;  ///< 50 ms

RINGSIDE_START_DATA constinit std::atomic<std::uint32_t> walking{0};
RINGSIDE_START_DATA constinit std::atomic<std::uint32_t> forking{0};
/// A signal handler may fork, or look something up, inside a walk of its own thread.
__thread std::uint32_t t_walking __attribute__((tls_model("initial-exec")));

/// @return once `word` is no more than `wanted`, or after a while
void wait_for(const std::atomic<std::uint32_t>& word, std::uint32_t wanted) {
    const int saved_errno = errno;
    for (std::uint32_t i = 0; i < kMostLooks; ++i) {
        // SYNC(walk): pairs with the sequentially consistent stores of the other side: of two that begin at once one sees the other.
        if (word.load(std::memory_order_seq_cst) <= wanted) break;
        const timespec pause{0, kLookNs};
        sleep_for(pause);
    }
    errno = saved_errno;
}

/// Counts a walk, unless a fork is under way.
void begin_walk() {
    if (t_walking++ != 0) return;
    // SYNC(walk): as in wait_for().
    walking.fetch_add(1, std::memory_order_seq_cst);
    if (forking.load(std::memory_order_seq_cst) == 0) [[likely]]
        return;
    walking.fetch_sub(1, std::memory_order_seq_cst);
    wait_for(forking, 0);
    walking.fetch_add(1, std::memory_order_seq_cst);
}

void end_walk() {
    if (--t_walking != 0) return;
    // SYNC(walk): the loader's lock is free before the count says so.
    walking.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace

int walk_objects(LookAtObject look, void* argument) {
    begin_walk();
    const int result = dl_iterate_phdr(look, argument);
    end_walk();
    return result;
}

void hold_walks() {
    // SYNC(walk): as in begin_walk(). Several threads may fork at once.
    forking.fetch_add(1, std::memory_order_seq_cst);
    wait_for(walking, t_walking != 0 ? 1 : 0);
}

void release_walks() {
    // SYNC(walk): as above.
    forking.fetch_sub(1, std::memory_order_seq_cst);
}

void reset_walks_after_fork() {
    walking.store(t_walking != 0 ? 1 : 0, std::memory_order_relaxed);
    forking.store(0, std::memory_order_relaxed);
}

bool walks_are_held() {
    // SYNC(walk): as above.
    return forking.load(std::memory_order_seq_cst) != 0;
}

}  // namespace ringside::inject
