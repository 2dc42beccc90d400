#include "inject/core/fork.hpp"

#include <pthread.h>

#include "inject/core/capture.hpp"
#include "inject/core/helper_thread.hpp"
#include "inject/core/segment_file.hpp"
#include "inject/core/thread_entry.hpp"

namespace ringside::inject {

namespace {

void in_child() {
    forget_thread();
    replace_segment_after_fork();
    reset_capture_after_fork();
    restart_helper_thread_after_fork();
}

}  // namespace

void watch_forks() {
    pthread_atfork(nullptr, nullptr, in_child);
}

}  // namespace ringside::inject
