#include "inject/sources/torch/callbacks_lock.hpp"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <iterator>

#include "inject/core/c_library.hpp"
#include "inject/core/slots/slots.hpp"

namespace ringside::inject::torch {
namespace {

void* g_original;
std::atomic<pthread_mutex_t*> g_lock{nullptr};
std::atomic<bool> g_used{false};

/// What is seen of this thread, while it learns.
__thread OneMutex* t_seen __attribute__((tls_model("initial-exec")));
__thread bool t_holds __attribute__((tls_model("initial-exec")));

int wrap_lock(pthread_mutex_t* mutex) {
    if (t_seen != nullptr) t_seen->saw(mutex);
    return reinterpret_cast<int (*)(pthread_mutex_t*)>(g_original)(mutex);
}

SlotHook g_hooks[] = {
    {"pthread_mutex_lock", reinterpret_cast<void*>(wrap_lock), &g_original, 0},
};

// A tool may stand between libtorch and the C library.
SlotSet g_slots = {.providers = {"libc.so", "libpthread.so"},
                   .objects = {"libtorch_cpu.so"},
                   .hooks = g_hooks,
                   .hook_count = std::size(g_hooks),
                   .symbol_prefix = "pthread_mutex_lock",
                   .except = {},
                   .any_target = true};

}  // namespace

void learn_callbacks_lock(std::uint64_t (*add_callback)(RecordFunctionCallback),
                          void (*remove_callback)(std::uint64_t)) {
    scan_slots(g_slots);
    if (g_hooks[0].slots == 0) return;
    RecordFunctionCallback callback{};
    callback.sampling_probability = 1.0;
    // A thread's first look at the list is not seen.
    remove_callback(add_callback(callback));
    OneMutex seen;
    write_slots(g_slots, true);
    t_seen = &seen;
    remove_callback(add_callback(callback));
    t_seen = nullptr;
    write_slots(g_slots, false);
    g_lock.store(static_cast<pthread_mutex_t*>(seen.get()), std::memory_order_relaxed);
}

void use_callbacks_lock() {
    g_used.store(true, std::memory_order_relaxed);
}

void hold_callbacks_lock() {
    pthread_mutex_t* const lock = g_lock.load(std::memory_order_relaxed);
    const ThreadFunctions* const threads = thread_functions();
    if (lock == nullptr || threads == nullptr || !g_used.load(std::memory_order_relaxed)) return;
    const int saved_errno = errno;
    timespec deadline{};
    clock_gettime(CLOCK_REALTIME, &deadline);
    ++deadline.tv_sec;
    t_holds = threads->timed_lock(lock, &deadline) == 0;
    errno = saved_errno;
}

void release_callbacks_lock() {
    if (!t_holds) return;
    t_holds = false;
    pthread_mutex_unlock(g_lock.load(std::memory_order_relaxed));
}

}  // namespace ringside::inject::torch
