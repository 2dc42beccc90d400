#include "inject/core/helper_thread.hpp"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

#include "inject/core/c_library.hpp"
#include "inject/core/capture.hpp"
#include "inject/core/fork.hpp"
#include "inject/core/kernel_calls.hpp"
#include "inject/core/process.hpp"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

namespace ringside::inject {

namespace {

constinit std::atomic<bool> allowed{true};
constinit std::atomic<bool> running{false};
constinit std::atomic<bool> hears_forks{false};
/// Counts wake-ups from within the process; the capture word itself belongs to all processes of the job.
constinit std::atomic<std::uint32_t> wake_count{0};

/// Small: sources look up symbols and store into slots here. Where the program's TLS is larger, the default size.
constexpr std::size_t kStackBytes = 1u << 20;

// As in linux/futex.h of 5.16, which older headers lack.
struct FutexWait {
    std::uint64_t value;
    std::uint64_t address;
    std::uint32_t flags;
    std::uint32_t reserved;
};
constexpr std::uint32_t kFutex32 = 2;
constexpr std::uint32_t kFutexPrivate = 128;

/// Whether a futex call has waited, or had no need to. What else there is (no such call, or a container's filter that knows none) comes back at once
/// and each time: to ask it again would be a loop without a sleep.
bool has_waited(long result) {
    return result >= 0 || errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT;
}

/// How often a word is looked at that nobody can wake us for.
constexpr long kLookNs = 200'000'000;

/// Sleeps until either word differs from what was seen of it.
/// @param for_turn  no longer than until the sources' next turn
/// @return false: nothing here lets a thread sleep
bool wait_for_change(const std::atomic<std::uint32_t>& word, std::uint32_t seen_word,
                     std::uint32_t seen_wakes, bool for_turn) {
    timespec until{};
    if (for_turn) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += schema::kTurnNs;
        if (until.tv_nsec >= schema::kNsPerSecond) {
            until.tv_nsec -= schema::kNsPerSecond;
            ++until.tv_sec;
        }
    }
    const FutexWait waits[2] = {
        {seen_word, reinterpret_cast<std::uintptr_t>(&word), kFutex32, 0},
        {seen_wakes, reinterpret_cast<std::uintptr_t>(&wake_count), kFutex32 | kFutexPrivate, 0}};
    if (has_waited(
            syscall(SYS_futex_waitv, waits, 2, 0, for_turn ? &until : nullptr, CLOCK_MONOTONIC)))
        return true;
    // Before 5.16 a thread waits on one word: the shared one. Objects loaded during a capture are looked for a few times a second.
    const timespec period{0, for_turn ? schema::kTurnNs : kLookNs};
    if (has_waited(syscall(SYS_futex, &word, FUTEX_WAIT, seen_word,
                           (seen_word & 1) != 0 ? &period : nullptr)))
        return true;
    return has_waited(sleep_for(period));
}

void* run(void*) {
    prctl(PR_SET_NAME, "ringside");
    const std::atomic<std::uint32_t>& word = g_process.control->capture_word;
    for (;;) {
        // SYNC(wake): pairs with the release in wake_helper_thread().
        const std::uint32_t wakes = wake_count.load(std::memory_order_acquire);
        const std::uint32_t seen = word.load(std::memory_order_acquire);
        // At once, whoever holds the locks: hooks see the end of a capture from here on.
        if (g_living.watched_word.load(std::memory_order_relaxed) != seen)
            g_living.watched_word.store(0, std::memory_order_relaxed);
        catch_up(Place::kHelper);
        if (!wait_for_change(word, seen, wakes, turn_sources())) break;
    }
    // As with RINGSIDE_THREAD=0: a thread that can't sleep would take a processor from the job.
    allowed.store(false, std::memory_order_relaxed);
    running.store(false, std::memory_order_release);
    // Behind whoever acts at this moment and has still counted on us.
    catch_up(Place::kHelper);
    g_living.watched_word.store(0, std::memory_order_relaxed);
    return nullptr;
}

bool start(std::size_t stack_bytes) {
    const ThreadFunctions* threads = thread_functions();
    if (threads == nullptr) return false;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (stack_bytes != 0) threads->set_stack_size(&attributes, stack_bytes);
    pthread_t thread{};
    const bool started = threads->create(&thread, &attributes, run, nullptr) == 0;
    pthread_attr_destroy(&attributes);
    return started;
}

}  // namespace

void allow_helper_thread(bool allow) {
    allowed.store(allow, std::memory_order_relaxed);
}

bool has_helper_thread() {
    return running.load(std::memory_order_acquire);
}

void ensure_helper_thread() {
    if (!has_segment() || !allowed.load(std::memory_order_relaxed)) return;
    if (running.exchange(true, std::memory_order_acq_rel)) return;
    const int saved_errno = errno;
    if (!hears_forks.exchange(true, std::memory_order_relaxed)) watch_forks_for_helper();
    // The thread inherits the mask: no signal of the job's is ever delivered to it.
    sigset_t all, before;
    sigfillset(&all);
    // In Linux's C libraries the mask is the calling thread's; pthread_sigmask() is newer in libc itself.
    sigprocmask(SIG_SETMASK, &all, &before);
    if (!start(kStackBytes) && !start(0)) running.store(false, std::memory_order_release);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    errno = saved_errno;
}

void wake_helper_thread() {
    const int saved_errno = errno;
    // SYNC(wake): pairs with the acquire in run().
    wake_count.fetch_add(1, std::memory_order_release);
    syscall(SYS_futex, &wake_count, FUTEX_WAKE_PRIVATE, INT_MAX);
    errno = saved_errno;
}

void restart_helper_thread_after_fork() {
    if (running.exchange(false, std::memory_order_acq_rel)) ensure_helper_thread();
}

}  // namespace ringside::inject
