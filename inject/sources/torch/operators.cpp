#include "inject/sources/torch/operators.hpp"

#include <cstring>

#include "inject/core/emit.hpp"
#include "inject/core/pools.hpp"
#include "inject/core/source.hpp"
#include "inject/sources/torch/abi.hpp"
#include "inject/sources/torch/calibrate.hpp"
#include "inject/sources/torch/callbacks_lock.hpp"
#include "inject/sources/torch/collectives.hpp"
#include "inject/sources/torch/ended_elsewhere.hpp"
#include "inject/sources/torch/range_access.hpp"
#include "inject/sources/torch/shapes.hpp"
#include "inject/sources/torch/thread_state.hpp"

namespace ringside::inject::torch {
namespace {

struct Iterations {
    std::atomic<std::uint32_t> name;  // NameId; 0: free
    std::atomic<std::uint64_t> count;
};

constexpr std::uint32_t kAsyncSets = 128;
constexpr std::uint32_t kIterationNames = 64;
constexpr char kStepPrefix[] = "Optimizer.step#";

CalibrationApi g_calibration_api;
CalibrationResult g_calibrated = CalibrationResult::kUnsupported;
bool g_thread_state_known;
std::uint64_t g_handle;
bool g_registered;
bool g_with_shapes;  // what the registered callback was asked for

// Ranges that may end on another thread (gloo's), by RecordFunction: the key of their pair.
constinit KeyedTable<std::uint64_t, kAsyncSets> g_async;
constinit Iterations g_iterations[kIterationNames]{};

/// Which of RecordFunction's fields the calibration has found: with all of them a callback need not ask.
enum class Fields : std::uint8_t { kAll, kSome };

/// @return `absent` where the field's place is not known
template <Fields kFields, class T>
T field(const char* range, std::uint16_t offset, T absent = {}) {
    if (kFields == Fields::kSome && offset == 0) return absent;
    T value;
    std::memcpy(&value, range + offset, sizeof value);
    return value;
}

template <Fields kFields>
std::uint8_t scope_of(const char* range) {
    return field<kFields, std::uint8_t>(range, g_range.offsets.scope);
}

// c10d makes its ranges async, of this scope. Where the scope is not known, any may be.
template <Fields kFields>
bool is_async(const char* range, std::uint8_t scope) {
    const bool may_be = scope == static_cast<std::uint8_t>(schema::TorchScope::kUser) ||
                        (kFields == Fields::kSome && g_range.offsets.scope == 0);
    return may_be && g_range.api.is_async != nullptr && g_range.api.is_async(range);
}

[[gnu::noinline]] void begin_async(ThreadLane& lane, const char* range, std::uint8_t scope) {
    const std::uint64_t key = next_key();
    if (!g_async.put(reinterpret_cast<std::uint64_t>(range), key)) {
        count_loss(schema::Loss::kTableFull);
        return;
    }
    const Collective collective = take_collective();
    const NameId name = lane.intern_cached(g_range.api.name(range), collective.attributes);
    lane.async_begin(SourceId::kTorch, scope, name, key, collective.sequence);
}

[[gnu::noinline]] bool end_async(ThreadLane& lane, const char* range, std::uint8_t scope) {
    std::uint64_t key = 0;
    if (!g_async.take(reinterpret_cast<std::uint64_t>(range), &key)) return false;
    lane.async_end(SourceId::kTorch, scope, lane.intern_cached(g_range.api.name(range)), key, 0);
    return true;
}

// Of these scopes alone, so that ends without a begin of ours (begun before the capture) stay cheap.
bool may_end_elsewhere(std::uint8_t scope) {
    return scope == static_cast<std::uint8_t>(schema::TorchScope::kTorchScript) ||
           scope == static_cast<std::uint8_t>(schema::TorchScope::kUser);
}

/// The range's name: most are an operator's, and lie where they were.
[[gnu::always_inline]] inline NameId name_of(ThreadLane& lane, const char* range) {
    const char* const text = g_range.api.name(range);
    const NameId known = g_address_cache.find(text);
    if (known != schema::kNoName) [[likely]]
        return known;
    return lane.intern_stranger(text);
}

template <Fields kFields>
[[gnu::always_inline]] inline void begin(ThreadLane& lane, const char* range,
                                         const ShapesText* shapes) {
    lane.fetch_ahead();
    end_what_ended_elsewhere(lane);
    const auto scope = scope_of<kFields>(range);
    if (is_async<kFields>(range, scope)) [[unlikely]]
        return begin_async(lane, range, scope);
    // The range's name last: where the table is full, its bytes belong to what is interned last.
    const NameId inputs = shapes == nullptr ? schema::kNoName : intern_shapes(lane, *shapes);
    const NameId name = name_of(lane, range);
    lane.begin_range(SourceId::kTorch, scope, name, reinterpret_cast<std::uint64_t>(range),
                     inputs.value);
}

// torch hands the result to the end callback and deletes it through its vtable: null, and the range is found by its address.
template <Fields kFields>
void* on_start(void** context_out, const char* range) {
    *context_out = nullptr;
    HookScope hook(HookScope::Attached{}, Writes::kNothing);
    if (hook) begin<kFields>(hook.lane(), range, nullptr);
    return context_out;
}

void* on_start_with_shapes(void** context_out, const char* range) {
    *context_out = nullptr;
    if ((capture_word() & 1) == 0) return context_out;
    ShapesText shapes;
    read_shapes(range, &shapes);
    HookScope hook(Writes::kNothing);
    if (hook) begin<Fields::kSome>(hook.lane(), range, &shapes);
    return context_out;
}

// A boundary of the training loop: counted per name, in the whole process.
[[gnu::noinline]] void count_step(ThreadLane& lane, const char* range) {
    const char* const text = g_range.api.name(range);
    if (std::strncmp(text, kStepPrefix, sizeof kStepPrefix - 1) != 0) return;
    const NameId name = lane.intern(text, std::strlen(text));
    for (Iterations& entry : g_iterations) {
        std::uint32_t expected = 0;
        if (!entry.name.compare_exchange_strong(expected, name.value, std::memory_order_relaxed) &&
            expected != name.value)
            continue;
        lane.iteration(SourceId::kTorch, name,
                       entry.count.fetch_add(1, std::memory_order_relaxed) + 1, 0);
        return;
    }
    count_loss(schema::Loss::kTableFull);
}

template <Fields kFields>
[[gnu::always_inline]] inline ThreadLane::OperatorEnd operator_end(const char* range,
                                                                   std::uint8_t scope) {
    const RangeOffsets& offsets = g_range.offsets;
    return {field<kFields, std::int64_t>(range, offsets.sequence, -1),
            field<kFields, std::uint32_t>(range, offsets.thread),
            field<kFields, std::uint32_t>(range, offsets.forward_thread), scope};
}

bool is_operator(const ThreadLane::OperatorEnd& end) {
    return end.sequence >= 0 ||
           end.scope == static_cast<std::uint64_t>(schema::TorchScope::kBackward);
}

/// A range that is not the innermost one, or needs more than its record. One that is not on the stack is an async one, another thread's, or begun before
/// the capture, which is no loss.
/// @return whether it was on the stack
template <Fields kFields, bool kWithShapes>
[[gnu::cold, gnu::noinline]] bool end_with_care(ThreadLane& lane, const char* range) {
    const auto key = reinterpret_cast<std::uint64_t>(range);
    const auto scope = scope_of<kFields>(range);
    const auto end = operator_end<kFields>(range, scope);
    if (kWithShapes || is_operator(end) ? lane.end_operator(key, end) : lane.end_range(key))
        return true;
    if (!end_async(lane, range, scope) && may_end_elsewhere(scope)) leave_word(key);
    return false;
}

template <Fields kFields, bool kWithShapes>
void on_end(const char* range, void* /*context*/) {
    HookScope hook(HookScope::Attached{});
    if (!hook) return;
    ThreadLane& lane = hook.lane();
    const auto key = reinterpret_cast<std::uint64_t>(range);
    const auto scope = scope_of<kFields>(range);
    const auto end = operator_end<kFields>(range, scope);
    bool done =
        kWithShapes || is_operator(end) ? lane.end_operator_plain(key, end) : lane.end_plain(key);
    if (!done) [[unlikely]]
        done = end_with_care<kFields, kWithShapes>(lane, range);
    if (done && scope == static_cast<std::uint8_t>(schema::TorchScope::kUser)) [[unlikely]]
        count_step(lane, range);
}

void choose_callbacks(RecordFunctionCallback& callback, bool with_shapes) {
    const RangeOffsets& found = g_range.offsets;
    if (with_shapes) {
        callback.start = on_start_with_shapes;
        callback.end = on_end<Fields::kSome, true>;
    } else if (found.scope != 0 && found.sequence != 0 && found.thread != 0 &&
               found.forward_thread != 0) {
        callback.start = on_start<Fields::kAll>;
        callback.end = on_end<Fields::kAll, false>;
    } else {
        callback.start = on_start<Fields::kSome>;
        callback.end = on_end<Fields::kSome, false>;
    }
}

template <class Function>
void find(const SlotSet& libraries, const char* symbol, Function** out) {
    *out = reinterpret_cast<Function*>(find_symbol(libraries, symbol));
}

const char* missing_fields() {
    switch (g_calibrated) {
        case CalibrationResult::kObserved:
            return "another observer is registered: operators without scope and sequence number";
        case CalibrationResult::kUnsupported:
            return "RecordFunction can't be calibrated: operators without scope and sequence "
                   "number";
        case CalibrationResult::kDone:
            break;
    }
    if (g_range.offsets.scope == 0 || g_range.offsets.sequence == 0 || g_range.offsets.thread == 0)
        return "RecordFunction's fields not found: operators without scope and sequence number";
    return g_range.offsets.forward_thread == 0
               ? "RecordFunction's forward thread not found: backward is not linked to forward"
               : nullptr;
}

}  // namespace

OperatorAbility prepare_operators(const SlotSet& libraries) {
    CalibrationApi& api = g_calibration_api;
    if (api.add_callback == nullptr) {
        find(libraries, kRemoveCallback, &api.remove_callback);
        find(libraries, kHasCallbacks, &api.has_callbacks);
        find(libraries, kRangeConstructor, &api.construct);
        find(libraries, kRangeDestructor, &api.destroy);
        find(libraries, kRangeThreadId, &api.current_thread_id);
        find(libraries, kRangeBeforeText, &api.before_text);
        find(libraries, kRangeBeforeVariant, &api.before_variant);
        find(libraries, kRangeName, &g_range.api.name);
        find(libraries, kRangeIsAsync, &g_range.api.is_async);
        find(libraries, kThreadCallbacks, &api.thread_state.current);
        find(libraries, kEnableCallbacks, &api.thread_state.enable);
        find(libraries, kAddThreadCallback, &api.thread_state.add_callback);
        api.thread_state.remove_callback = api.remove_callback;
        find(libraries, kAddCallback, &api.add_callback);
    }
    OperatorAbility ability;
    ability.callbacks = api.add_callback != nullptr && api.remove_callback != nullptr &&
                        g_range.api.name != nullptr;
    if (!ability.callbacks) return ability;
    // With our own callback registered the calibration would take it for an observer's; it ran before then.
    if (g_calibrated != CalibrationResult::kDone && !g_registered) {
        // The first look has torch make the object that keeps its callbacks, which exit() takes apart.
        if (api.has_callbacks != nullptr) api.has_callbacks();
        end_acting_at_exit();
        Calibrated found;
        g_calibrated = calibrate(api, &found);
        g_range.offsets = found.offsets;
        g_thread_state_known = found.thread_state && prepare_thread_state(api.thread_state);
        if (g_calibrated == CalibrationResult::kDone)
            learn_callbacks_lock(api.add_callback, api.remove_callback);
    }
    ability.missing_fields = missing_fields();
    ability.shapes = prepare_shapes(libraries);
    return ability;
}

void attach_operators(bool with_shapes) {
    if (g_calibration_api.add_callback == nullptr) return;
    if (g_registered && with_shapes == g_with_shapes) return;
    detach_operators();
    RecordFunctionCallback callback{};
    choose_callbacks(callback, with_shapes);
    callback.sampling_probability = 1.0;
    std::memset(callback.scopes, 1, sizeof callback.scopes);
    callback.needs_inputs = with_shapes ? 1 : 0;
    use_callbacks_lock();
    g_handle = g_calibration_api.add_callback(callback);
    g_with_shapes = with_shapes;
    g_registered = true;
    if (g_thread_state_known) attach_thread_state();
}

void detach_operators() {
    if (!g_registered) return;
    if (g_thread_state_known) detach_thread_state();
    g_calibration_api.remove_callback(g_handle);
    g_registered = false;
    g_async.clear();
    forget_words();
}

}  // namespace ringside::inject::torch
