// How a thread comes into a hook when it is not the common way, and how it leaves for good.
#include <errno.h>
#include <pthread.h>

#include "inject/core/c_library.hpp"
#include "inject/core/lanes.hpp"
#include "inject/core/open_calls.hpp"
#include "inject/core/start_data.hpp"
#include "inject/core/thread_entry.hpp"

namespace ringside::inject {

constinit __thread ThreadSlot t_slot
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

namespace {

RINGSIDE_START_DATA constinit pthread_key_t exit_key{};
RINGSIDE_START_DATA constinit const ThreadFunctions* threads = nullptr;  // null: there is no key
constinit std::atomic<bool> children_off{false};

/// Runs at the thread's end. Hooks in later destructors make a new lane, and the C library then calls this once more.
void at_thread_exit(void*) {
    ThreadSlot& slot = t_slot;
    give_back_own_open_call();
    if (!slot.lane.is_open()) return;
    const bool inside = slot.word == ThreadSlot::kInside;
    // A signal handler's hook finds the lane neither half closed nor the thread's any more.
    slot.word = ThreadSlot::kInside;
    std::atomic_signal_fence(std::memory_order_acq_rel);
    // A forked child's threads are not those whose lanes these were; nor are a child's that no handler of ours has seen.
    if (inside || is_off_for_good()) {
        slot.lane = {};
    } else {
        release_lane(slot.lane);
    }
    std::atomic_signal_fence(std::memory_order_acq_rel);
    slot.word = 0;
}

bool selected(std::uint32_t word) {
    const schema::CaptureWord capture = schema::CaptureWord::unpack(word);
    return !capture.selected_only ||
           g_process.header->selected.load(std::memory_order_relaxed) != 0;
}

/// A thread that got no lane asks again after as many hooks: memory may have come back.
constexpr std::uint32_t kRefusedBetweenTries = 1024;

bool asks_again(ThreadSlot& slot) {
    return slot.refused_lane != 0 && --slot.refused_lane == 0;
}

void count_refused(Writes writes) {
    if (writes == Writes::kRecord) count_loss(schema::Loss::kLaneRefused);
}

bool refuse_for_want_of_a_lane(ThreadSlot& slot, std::uint32_t word) {
    slot.refused = word;
    slot.refused_lane = kRefusedBetweenTries;
    slot.word = 0;
    return false;
}

/// What a thread keeps of a capture, at its first record in it.
void start_capture(ThreadSlot& slot) {
    slot.sources = g_process.control->source_mask.load(std::memory_order_relaxed);
    slot.pushed.start();
}

bool open_lane(ThreadSlot& slot) {
    const int saved_errno = errno;
    const bool opened = acquire_lane(slot.lane);
    if (opened) watch_thread_exit();
    errno = saved_errno;
    return opened;
}

}  // namespace

void prepare_thread_exit() {
    // At load, while few keys are taken: values of the first 32 keys lie in the thread's own block, those of others in malloc's memory.
    const ThreadFunctions* functions = thread_functions();
    if (functions != nullptr && functions->key_create(&exit_key, at_thread_exit) == 0)
        threads = functions;
}

void watch_thread_exit() {
    if (threads != nullptr) threads->set_specific(exit_key, &t_slot);
}

// Not at load: most processes record nothing, and it would cost each of their starts a piece of a mapping. A child that was made before the call
// is told by its pid.
bool is_unseen_child() {
    if (children_off.load(std::memory_order_relaxed)) return false;
    if (!is_segments_process()) return true;
    const int saved_errno = errno;
    empty_living_page_in_children();
    errno = saved_errno;
    children_off.store(true, std::memory_order_relaxed);
    return false;
}

bool forget_thread() {
    if (t_slot.word == ThreadSlot::kInside) return false;
    t_slot = {};
    return true;
}

std::uint32_t enter_attached_hook(Writes writes) {
    const std::uint32_t now = capture_word();
    return (now & 1) != 0 && enter_hook(now, writes) ? now : 0;
}

bool enter_hook(std::uint32_t word, Writes writes, std::uint32_t sources) {
    // First of all: what nobody wants is not lost, and is worth no lane.
    if ((sources & g_process.control->source_mask.load(std::memory_order_relaxed)) == 0)
        return false;
    ThreadSlot& slot = t_slot;
    if (slot.word == ThreadSlot::kInside) {
        if (writes == Writes::kRecord) count_loss(schema::Loss::kReentered);
        return false;
    }
    if (slot.refused == word && !asks_again(slot)) {
        count_refused(writes);
        return false;
    }
    // Asked each time: who comes into a capture of some processes is chosen a moment later.
    if (!selected(word)) return false;
    if (!slot.lane.is_open() && is_unseen_child()) return false;
    // In one piece: a signal handler's hook before it may open the lane, and begin a range that stays.
    const std::uint32_t last =
        __atomic_exchange_n(&slot.word, ThreadSlot::kInside, __ATOMIC_ACQ_REL);
    if (!slot.lane.is_open()) {
        if (!open_lane(slot)) {
            count_refused(writes);
            return refuse_for_want_of_a_lane(slot, word);
        }
        slot.refused = 0;
        start_capture(slot);
    } else if (last != word) {
        slot.lane.start_generation();
        start_capture(slot);
    }
    return true;
}

}  // namespace ringside::inject
