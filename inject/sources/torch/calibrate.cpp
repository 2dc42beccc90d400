#include "inject/sources/torch/calibrate.hpp"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstring>

#include "inject/core/c_library.hpp"

namespace ringside::inject::torch {
namespace {

// RecordScopes that nothing around us uses at that moment, and sequence numbers that no job reaches.
constexpr std::uint8_t kScopes[2] = {7, 6};
constexpr std::int64_t kSequences[2] = {0x05ca1ab1e0ddba11, 0x7e57c0de12345678};
constexpr char kName[] = "ringside";
// Two handles drawn one after the other; other threads may draw some in between.
constexpr std::uint64_t kMaxHandleStep = 1000;
constexpr std::size_t kRangeBytes = 4096;  // a RecordFunction with room to grow

template <class T>
T field(const char* bytes, std::size_t offset) {
    T value;
    std::memcpy(&value, bytes + offset, sizeof value);
    return value;
}

// The offset at which `matches` holds, if there is exactly one.
template <class Matches>
std::uint16_t only_offset(std::size_t from, std::size_t to, std::size_t step, Matches matches) {
    std::uint16_t found = 0;
    for (std::size_t offset = from; offset < to; offset += step) {
        if (!matches(offset)) continue;
        if (found != 0) return 0;
        found = static_cast<std::uint16_t>(offset);
    }
    return found;
}

struct Calibration {
    const CalibrationApi* api;
    CalibrationSample sample;
    std::uint32_t seen;
    bool thread_state;
};

// The callback has no argument of ours: what it shall copy lies here. Other threads' operators run it too, so it looks at our range alone.
std::atomic<Calibration*> g_current{nullptr};
std::atomic<const char*> g_range{nullptr};
alignas(64) char g_buffer[kRangeBytes];

void* copy_range(void** context_out, const char* range) {
    *context_out = nullptr;
    if (range == g_range.load(std::memory_order_relaxed)) {
        Calibration* const current = g_current.load(std::memory_order_relaxed);
        if (current->seen < 2)
            std::memcpy(current->sample.bytes[current->seen++], range, kRangeCopyBytes);
    }
    return context_out;
}

void make_range(const CalibrationApi& api, std::uint32_t index) {
    std::memset(g_buffer, 0, sizeof g_buffer);
    // Set before the constructor: it decides there which callbacks the range will run.
    g_range.store(g_buffer, std::memory_order_relaxed);
    api.construct(g_buffer, kScopes[index]);
    if (api.before_text != nullptr) {
        api.before_text(g_buffer, kName, kSequences[index]);
    } else {
        api.before_variant(g_buffer, NameVariant{sizeof kName - 1, kName, 0}, kSequences[index]);
    }
    api.destroy(g_buffer);
    g_range.store(nullptr, std::memory_order_relaxed);
}

void* run(void* argument) {
    Calibration& calibration = *static_cast<Calibration*>(argument);
    const CalibrationApi& api = *calibration.api;
    RecordFunctionCallback callback{};
    callback.start = copy_range;
    callback.sampling_probability = 1.0;
    std::memset(callback.scopes, 1, sizeof callback.scopes);
    callback.needs_ids = 1;
    g_current.store(&calibration, std::memory_order_relaxed);
    calibration.sample.thread_id = api.current_thread_id();
    const std::uint64_t handle = api.add_callback(callback);
    for (std::uint32_t i = 0; i < 2; ++i) {
        calibration.sample.scope[i] = kScopes[i];
        calibration.sample.sequence[i] = kSequences[i];
        make_range(api, i);
    }
    api.remove_callback(handle);
    calibration.thread_state = thread_state_is_known(api.thread_state, callback);
    return nullptr;
}

bool complete(const CalibrationApi& api) {
    return api.add_callback != nullptr && api.remove_callback != nullptr &&
           api.construct != nullptr && api.destroy != nullptr && api.current_thread_id != nullptr &&
           (api.before_text != nullptr || api.before_variant != nullptr);
}

// With all signals blocked, so that none of the job's handlers runs on our thread.
bool run_on_own_thread(Calibration* calibration) {
    const ThreadFunctions* threads = thread_functions();
    if (threads == nullptr) return false;
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    pthread_t thread;
    const int error = threads->create(&thread, nullptr, run, calibration);
    sigprocmask(SIG_SETMASK, &old, nullptr);
    return error == 0 && threads->join(thread, nullptr) == 0;
}

}  // namespace

RangeOffsets find_offsets(const CalibrationSample& sample) {
    const char* const a = sample.bytes[0];
    const char* const b = sample.bytes[1];
    RangeOffsets found;
    found.sequence = only_offset(8, kRangeCopyBytes, 8, [&](std::size_t offset) {
        return field<std::int64_t>(a, offset) == sample.sequence[0] &&
               field<std::int64_t>(b, offset) == sample.sequence[1];
    });
    if (found.sequence == 0) return {};
    // The scope and, right before it, the thread: both stand before the sequence number in all versions.
    found.scope = only_offset(8, found.sequence, 1, [&](std::size_t offset) {
        return field<std::uint8_t>(a, offset) == sample.scope[0] &&
               field<std::uint8_t>(b, offset) == sample.scope[1];
    });
    if (found.scope >= 16 && found.scope % 8 == 0 &&
        field<std::uint64_t>(a, found.scope - 8) == sample.thread_id &&
        field<std::uint64_t>(b, found.scope - 8) == sample.thread_id)
        found.thread = static_cast<std::uint16_t>(found.scope - 8);
    // The handle counts ranges; the forward thread stands before it.
    const std::uint16_t handle =
        only_offset(found.sequence + 8u, kRangeCopyBytes, 8, [&](std::size_t offset) {
            const auto first = field<std::uint64_t>(a, offset);
            const auto second = field<std::uint64_t>(b, offset);
            return first != 0 && second > first && second - first < kMaxHandleStep;
        });
    if (handle > found.sequence + 8u) found.forward_thread = static_cast<std::uint16_t>(handle - 8);
    return found;
}

CalibrationResult calibrate(const CalibrationApi& api, Calibrated* out) {
    if (!complete(api)) return CalibrationResult::kUnsupported;
    if (api.has_callbacks != nullptr && api.has_callbacks()) return CalibrationResult::kObserved;
    Calibration calibration{&api, {}, 0, false};
    if (!run_on_own_thread(&calibration) || calibration.seen != 2)
        return CalibrationResult::kUnsupported;
    *out = {find_offsets(calibration.sample), calibration.thread_state};
    return CalibrationResult::kDone;
}

}  // namespace ringside::inject::torch
