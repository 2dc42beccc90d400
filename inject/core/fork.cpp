#include "inject/core/fork.hpp"

#include "inject/core/budget.hpp"
#include "inject/core/capture.hpp"
#include "inject/core/helper_thread.hpp"
#include "inject/core/open_calls.hpp"
#include "inject/core/process.hpp"
#include "inject/core/segment_file.hpp"
#include "inject/core/slots/loader_walk.hpp"
#include "inject/core/thread_entry.hpp"

// NOLINTBEGIN(readability-identifier-naming): the C library's own names
extern "C" {
// What pthread_atfork() calls, which is linked into each library. Weak: musl has none, and must be able to load us all the same.
int __register_atfork(void (*)(), void (*)(), void (*)(), void*) __attribute__((weak));
}
// NOLINTEND(readability-identifier-naming)

namespace ringside::inject {

namespace {

/// Who acts may walk: it is waited for first.
void before() {
    hold_acting();
    hold_walks();
}

void in_parent() {
    release_walks();
    release_acting();
}

void in_child() {
    reset_walks_after_fork();
    const bool forgotten = forget_thread();
    reset_budget_after_fork();
    reset_open_calls_after_fork();
    // No look at the loaded objects here: another thread may have held the loader's lock when the parent forked.
    // Nor at capture_word(): until the child has a segment it says off.
    const std::uint32_t word = g_process.control->capture_word.load(std::memory_order_acquire);
    const bool needed = (word & 1) != 0 || has_helper_thread() || any_source_ready();
    const ForkedSegment wanted = needed ? ForkedSegment::kNow : ForkedSegment::kIfNeeded;
    replace_segment_after_fork(forgotten ? wanted : ForkedSegment::kNever);
    reset_capture_after_fork();
}

}  // namespace

void watch_forks() {
    // Handlers before a fork run the last first, so that ours comes after whatever the job's wait for, and those after it the first first.
    // The last one tells the library by which handlers are taken back: ours stay.
    if (__register_atfork != nullptr) __register_atfork(before, in_parent, in_child, &g_process);
}

void watch_forks_for_helper() {
    if (__register_atfork != nullptr)
        __register_atfork(nullptr, nullptr, restart_helper_thread_after_fork, &g_process);
}

}  // namespace ringside::inject
