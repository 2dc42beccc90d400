#include "inject/core/capture.hpp"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "inject/core/c_library.hpp"
#include "inject/core/helper_thread.hpp"
#include "inject/core/process.hpp"
#include "inject/core/segment_file.hpp"
#include "inject/core/slots/loader_lock.hpp"
#include "inject/core/start_data.hpp"

// NOLINTBEGIN(readability-identifier-naming): the C library's own name
extern "C" int __cxa_atexit(void (*)(void*), void*, void*);
// NOLINTEND(readability-identifier-naming)

namespace ringside::inject {

using schema::CaptureWord;

namespace {

constexpr std::uint32_t kMaxSources = 8;
/// How long a look-up waits for another thread that is attaching. A bound, not a delay: should that thread wait for the loader's lock
/// and the caller hold it, both go on.
constexpr std::int64_t kGateWaitNs = schema::kNsPerSecond;

struct Watched {
    const Source* source = nullptr;
    bool ready = false;
    bool attached = false;
    std::uint64_t prepared_for = 0;  ///< object generation of the last prepare()
};

RINGSIDE_START_DATA constinit Watched watched[kMaxSources]{};
RINGSIDE_START_DATA constinit std::uint32_t watched_count = 0;
constinit pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
RINGSIDE_START_DATA constinit std::atomic<bool> mutex_held{false};
constinit std::atomic<bool> disabled{false};
RINGSIDE_START_DATA constinit std::atomic<bool> announced{false};
constinit std::atomic<std::uint32_t> acted{0};
constinit std::atomic<bool> hears_exit{false};
// A source that loads or looks up something while it attaches comes back in through the exported stubs.
__thread bool t_acting __attribute__((tls_model("initial-exec")));
/// What the caller had, for leave().
__thread int t_cancel_state __attribute__((tls_model("initial-exec")));
/// Nobody acts until the fork is over.
__thread bool t_holds_for_fork __attribute__((tls_model("initial-exec")));

/// @return whether the mutex is the caller's now
bool wait_for_mutex(const ThreadFunctions& threads) {
    timespec deadline{};
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += kGateWaitNs / schema::kNsPerSecond;
    return threads.timed_lock(&mutex, &deadline) == 0;
}

bool enter(Place place) {
    if (t_acting || disabled.load(std::memory_order_relaxed)) return false;
    const ThreadFunctions* threads = thread_functions();
    if (threads == nullptr) return false;
    bool locked = false;
    if (place == Place::kHelper) {
        locked = pthread_mutex_lock(&mutex) == 0;
    } else if (place == Place::kOutsideLoader || place == Place::kFrameworkCall) {
        locked = wait_for_mutex(*threads);
    } else {
        locked = threads->try_lock(&mutex) == 0;
    }
    if (!locked) return false;
    if (disabled.load(std::memory_order_relaxed)) {  // meanwhile
        pthread_mutex_unlock(&mutex);
        return false;
    }
    t_acting = true;
    mutex_held.store(true, std::memory_order_relaxed);
    // A thread of the job that somebody has cancelled would end in what sources call (they join a thread, and CUPTI may do anything), with the mutex.
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &t_cancel_state);
    return true;
}

void leave() {
    mutex_held.store(false, std::memory_order_relaxed);
    t_acting = false;
    pthread_mutex_unlock(&mutex);
    pthread_setcancelstate(t_cancel_state, nullptr);
}

/// @param all  null: only those that call us
void note_present(void* all) {
    for (std::uint32_t i = 0; i < watched_count; ++i) {
        Watched& one = watched[i];
        if (one.ready || (all == nullptr && !one.source->calls_us) || !one.source->present())
            continue;
        one.ready = true;
        set_level(one.source->id, schema::SourceLevel::kOff, "");
    }
}

/// A framework is ready once its constructors have run, which is sure where no dlopen() is under way.
void note_ready(Place place) {
    if (place == Place::kFrameworkCall) note_present(nullptr);
    if (place == Place::kOutsideLoader) note_present(&watched_count);
    if (place == Place::kHelper) with_loader_lock(note_present, &watched_count);
}

bool wants_capture(std::uint32_t word) {
    const CaptureWord capture = CaptureWord::unpack(word);
    return capture.on && (!capture.selected_only ||
                          g_process.header->selected.load(std::memory_order_acquire) != 0);
}

void bring(Watched& one, bool wanted, std::uint32_t word, bool new_word, bool idle_prepare) {
    const std::uint64_t objects = object_generation();
    const bool new_objects = objects != one.prepared_for;
    if ((wanted && new_objects) || (idle_prepare && one.prepared_for == 0)) {
        one.source->prepare();
        one.prepared_for = objects;
    }
    if (wanted && (!one.attached || new_objects || new_word)) {
        const std::uint32_t options = g_process.control->options.load(std::memory_order_relaxed);
        one.source->attach(AttachRequest{options, word});
        one.attached = true;
    } else if (!wanted && one.attached) {
        one.source->detach();
        one.attached = false;
        set_level(one.source->id, schema::SourceLevel::kOff, "");
    }
}

void act_on(std::uint32_t word, Place place) {
    const bool new_word = acted.load(std::memory_order_relaxed) != word;
    // Before the loader's lock is waited for: hooks see the end of a capture from here on.
    if (new_word) g_living.watched_word.store(0, std::memory_order_relaxed);
    note_ready(place);
    const bool on = wants_capture(word);
    const std::uint32_t mask = g_process.control->source_mask.load(std::memory_order_relaxed);
    bool any = false;
    for (std::uint32_t i = 0; i < watched_count; ++i) {
        Watched& one = watched[i];
        if (!one.ready) continue;
        any = true;
        const bool masked = (mask >> static_cast<std::uint32_t>(one.source->id) & 1) == 0;
        bring(one, on && !masked, word, new_word, place == Place::kHelper);
    }
    // Without any framework there is nothing to wait for: the agent tells that by the levels and by attached_word staying behind.
    if (!any) return;
    // One that a capture of others leaves alone has not done as ordered: it may be chosen yet, and be woken for that.
    const bool left_alone = CaptureWord::unpack(word).on && !on;
    if (!left_alone && g_process.header->attached_word.load(std::memory_order_relaxed) != word) {
        if (on) g_process.header->capture_clock = schema::take_snapshot(g_process.ticks_source);
        // SYNC(attached): clock and levels are there; pairs with the agent's acquire.
        g_process.header->attached_word.store(word, std::memory_order_release);
    }
    if (on && has_helper_thread()) g_living.watched_word.store(word, std::memory_order_relaxed);
    acted.store(word, std::memory_order_release);
}

}  // namespace

void set_sources(const Source* const* sources, std::uint32_t count) {
    watched_count = count < kMaxSources ? count : kMaxSources;
    for (std::uint32_t i = 0; i < watched_count; ++i) watched[i] = {sources[i], false, false, 0};
}

bool any_source_present() {
    for (std::uint32_t i = 0; i < watched_count; ++i) {
        if (watched[i].ready || watched[i].source->present()) return true;
    }
    return false;
}

bool announce_source(schema::SourceId source, schema::SourceLevel level, const char* reason) {
    make_pending_segment();
    if (!has_segment()) return false;
    set_level(source, level, reason);
    announced.store(true, std::memory_order_relaxed);
    return true;
}

bool any_source_ready() {
    if (announced.load(std::memory_order_relaxed)) return true;
    for (std::uint32_t i = 0; i < watched_count; ++i) {
        if (watched[i].ready) return true;
    }
    return false;
}

std::uint32_t acted_word() {
    return acted.load(std::memory_order_acquire);
}

std::uint32_t catch_up(Place place) {
    // A child that no handler saw has its parent's segment mapped, and none of its own.
    if (!has_segment() || is_off_for_good() || !is_segments_process() || !enter(place))
        return acted_word();
    const int saved_errno = errno;
    const std::atomic<std::uint32_t>& shared = g_process.control->capture_word;
    std::uint32_t word = 0;
    do {
        // SYNC(capture): options, mask and the "selected" flags are there; pairs with the agent's release.
        word = shared.load(std::memory_order_acquire);
        act_on(word, place);
    } while (shared.load(std::memory_order_acquire) != word);
    leave();
    errno = saved_errno;
    return word;
}

namespace {

/// Who acts is waited for; where that can't be, it has a second.
void end_acting(void*) {
    const bool entered = enter(Place::kOutsideLoader);
    disabled.store(true, std::memory_order_relaxed);
    if (entered) leave();
}

}  // namespace

void end_acting_at_exit() {
    if (!hears_exit.exchange(true, std::memory_order_relaxed))
        __cxa_atexit(end_acting, nullptr, nullptr);
}

bool turn_sources() {
    bool again = false;
    if (!has_segment() || is_off_for_good() || !enter(Place::kHelper)) return again;
    for (std::uint32_t i = 0; i < watched_count; ++i) {
        if (!watched[i].attached || watched[i].source->turn == nullptr) continue;
        watched[i].source->turn();
        again = true;
    }
    leave();
    return again;
}

void hold_acting() {
    const ThreadFunctions* threads = thread_functions();
    if (t_acting || threads == nullptr) return;
    const int saved_errno = errno;
    t_holds_for_fork = wait_for_mutex(*threads);
    errno = saved_errno;
    for (std::uint32_t i = 0; i < watched_count; ++i) {
        if (watched[i].ready && watched[i].source->hold_for_fork != nullptr)
            watched[i].source->hold_for_fork();
    }
}

namespace {

void release_sources() {
    for (std::uint32_t i = 0; i < watched_count; ++i) {
        if (watched[i].source->release_after_fork != nullptr)
            watched[i].source->release_after_fork();
    }
}

}  // namespace

void release_acting() {
    release_sources();
    if (!t_holds_for_fork) return;
    t_holds_for_fork = false;
    pthread_mutex_unlock(&mutex);
}

void reset_capture_after_fork() {
    release_sources();
    t_holds_for_fork = false;
    if (mutex_held.load(std::memory_order_relaxed) && !t_acting)
        disabled.store(true, std::memory_order_relaxed);
    mutex = PTHREAD_MUTEX_INITIALIZER;
    mutex_held.store(false, std::memory_order_relaxed);
    t_acting = false;
    // The new segment has acted on nothing yet: its helper does so at once.
    acted.store(0, std::memory_order_relaxed);
}

}  // namespace ringside::inject
