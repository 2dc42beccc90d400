#include "inject/core/fork.hpp"

#include <pthread.h>

#include "inject/core/capture.hpp"
#include "inject/core/helper_thread.hpp"
#include "inject/core/process.hpp"
#include "inject/core/segment_file.hpp"
#include "inject/core/thread_entry.hpp"

namespace ringside::inject {

namespace {

void in_child() {
    forget_thread();
    // No look at the loaded objects here: another thread may have held the loader's lock when the parent forked.
    // Nor at capture_word(): until the child has a segment it says off.
    const std::uint32_t word = g_process.control->capture_word.load(std::memory_order_acquire);
    const bool needed = (word & 1) != 0 || has_helper_thread() || any_source_ready();
    replace_segment_after_fork(needed ? ForkedSegment::kNow : ForkedSegment::kIfNeeded);
    reset_capture_after_fork();
    restart_helper_thread_after_fork();
}

}  // namespace

void watch_forks() {
    empty_living_page_in_children();
    pthread_atfork(nullptr, nullptr, in_child);
}

}  // namespace ringside::inject
