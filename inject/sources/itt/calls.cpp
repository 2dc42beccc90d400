#include "inject/sources/itt/calls.hpp"

#include <cstring>

#include "inject/core/attributes.hpp"
#include "inject/core/push_depth.hpp"
#include "inject/core/thread_names.hpp"
#include "inject/sources/itt/objects.hpp"

namespace ringside::inject::itt {
namespace {

using schema::PayloadType;

constinit std::atomic<AnyFunction> g_next[kMostCalls]{};

/// The numbers of calls that are handed on: their places in the list below.
enum Number : std::uint32_t {
    kTaskBegin,
    kTaskBeginFn,
    kTaskEnd,
    kTaskBeginEx,
    kTaskBeginFnEx,
    kTaskEndEx,
    kOverlappedBegin,
    kOverlappedBeginEx,
    kOverlappedEnd,
    kOverlappedEndEx,
    kRegionBegin,
    kRegionEnd,
    kFrameBegin,
    kFrameEnd,
    kMarker,
    kMarkerEx,
    kThreadName,
    kForwarded
};

template <class... Arguments>
void tell_next(Number number, Arguments... arguments) {
    const AnyFunction next = g_next[number].load(std::memory_order_relaxed);
    if (next != nullptr) reinterpret_cast<void (*)(Arguments...)>(next)(arguments...);
}

// --- records ---

std::uint64_t number_of(const void* object) {
    return reinterpret_cast<std::uintptr_t>(object) >> 4;
}

NameId name_in(ThreadLane& lane, const Domain* domain, const char* text,
               PayloadType payload = PayloadType::kNone) {
    AttributeSet set;
    if (domain != nullptr) set.domain = intern_label(lane, domain->name);
    set.payload = payload;
    const schema::AttributeId attributes = intern_attributes(set);
    return lane.intern_cached(text != nullptr ? text : "", attributes);
}

const char* text_of(const StringHandle* string) {
    return string != nullptr ? string->text : nullptr;
}

/// Begins with its domain's tasks on this thread; ends the innermost of them.
void push(const Domain* domain, const StringHandle* name) {
    const HookScope hook(SourceId::kItt, Writes::kNothing);
    if (!hook) return;
    hook.lane().begin_range(SourceId::kItt, 0, name_in(hook.lane(), domain, text_of(name)),
                            push_key(SourceId::kItt, number_of(domain)), 0);
}

void push_function(const Domain* domain, const void* function) {
    const HookScope hook(SourceId::kItt, Writes::kNothing);
    if (!hook) return;
    char text[2 + 16 + 1] = "0x";
    schema::write_hex(text + 2, reinterpret_cast<std::uintptr_t>(function), 16);
    text[18] = 0;
    hook.lane().begin_range(SourceId::kItt, 0, name_in(hook.lane(), domain, text),
                            push_key(SourceId::kItt, number_of(domain)), 0);
}

void pop(const Domain* domain) {
    const HookScope hook(SourceId::kItt);
    if (!hook) return;
    const std::uint64_t key = pop_key(SourceId::kItt, number_of(domain));
    if (key != 0) hook.lane().end_range(key);
}

/// Tasks, regions and frames bear ids: one of each kind may have the same.
std::uint64_t identity_of(Number kind, const Domain* domain, const Id& id) {
    std::uint64_t hash = schema::mix64(number_of(domain) + 0x9e3779b97f4a7c15ull * (kind + 1));
    for (const std::uint64_t word : id.words) hash = schema::mix64(hash ^ schema::mix64(word + 1));
    return hash == 0 ? 1 : hash;
}

void begin_pair(Number kind, const Domain* domain, const Id& id, const char* text) {
    const HookScope hook(SourceId::kItt);
    if (!hook) return;
    const std::uint64_t key = next_key();
    if (!remember_pair(identity_of(kind, domain, id), key, hook.word()))
        return count_loss(schema::Loss::kTableFull);
    hook.lane().async_begin(SourceId::kItt, 0, name_in(hook.lane(), domain, text), key, 0);
}

void end_pair(Number kind, const Domain* domain, const Id& id) {
    const HookScope hook(SourceId::kItt);
    const std::uint64_t key = hook ? take_pair(identity_of(kind, domain, id), hook.word()) : 0;
    if (key != 0) hook.lane().async_end(SourceId::kItt, 0, schema::kNoName, key, 0);
}

void mark(const Domain* domain, const StringHandle* name) {
    const HookScope hook(SourceId::kItt);
    if (hook)
        hook.lane().mark(SourceId::kItt, 0, name_in(hook.lane(), domain, text_of(name)), 0, 0);
}

// --- tasks. The clock domains of the _ex calls are the program's own; our times are ours ---

void task_begin(const Domain* domain, Id id, Id parent, StringHandle* name) {
    push(domain, name);
    tell_next(kTaskBegin, domain, id, parent, name);
}
void task_begin_fn(const Domain* domain, Id id, Id parent, void* function) {
    push_function(domain, function);
    tell_next(kTaskBeginFn, domain, id, parent, function);
}
void task_end(const Domain* domain) {
    pop(domain);
    tell_next(kTaskEnd, domain);
}
void task_begin_ex(const Domain* domain, void* clock, std::uint64_t time, Id id, Id parent,
                   StringHandle* name) {
    push(domain, name);
    tell_next(kTaskBeginEx, domain, clock, time, id, parent, name);
}
void task_begin_fn_ex(const Domain* domain, void* clock, std::uint64_t time, Id id, Id parent,
                      void* function) {
    push_function(domain, function);
    tell_next(kTaskBeginFnEx, domain, clock, time, id, parent, function);
}
void task_end_ex(const Domain* domain, void* clock, std::uint64_t time) {
    pop(domain);
    tell_next(kTaskEndEx, domain, clock, time);
}
void overlapped_begin(const Domain* domain, Id id, Id parent, StringHandle* name) {
    begin_pair(kOverlappedBegin, domain, id, text_of(name));
    tell_next(kOverlappedBegin, domain, id, parent, name);
}
void overlapped_begin_ex(const Domain* domain, void* clock, std::uint64_t time, Id id, Id parent,
                         StringHandle* name) {
    begin_pair(kOverlappedBegin, domain, id, text_of(name));
    tell_next(kOverlappedBeginEx, domain, clock, time, id, parent, name);
}
void overlapped_end(const Domain* domain, Id id) {
    end_pair(kOverlappedBegin, domain, id);
    tell_next(kOverlappedEnd, domain, id);
}
void overlapped_end_ex(const Domain* domain, void* clock, std::uint64_t time, Id id) {
    end_pair(kOverlappedBegin, domain, id);
    tell_next(kOverlappedEndEx, domain, clock, time, id);
}

// --- regions, frames, marks, names of threads ---

void region_begin(const Domain* domain, Id id, Id parent, const StringHandle* name) {
    begin_pair(kRegionBegin, domain, id, text_of(name));
    tell_next(kRegionBegin, domain, id, parent, name);
}
void region_end(const Domain* domain, Id id) {
    end_pair(kRegionBegin, domain, id);
    tell_next(kRegionEnd, domain, id);
}
/// A frame has no name but its domain's; without an id there is one at a time.
void frame_begin(const Domain* domain, Id* id) {
    if (domain != nullptr)
        begin_pair(kFrameBegin, domain, id != nullptr ? *id : Id{}, domain->name);
    tell_next(kFrameBegin, domain, id);
}
void frame_end(const Domain* domain, Id* id) {
    if (domain != nullptr) end_pair(kFrameBegin, domain, id != nullptr ? *id : Id{});
    tell_next(kFrameEnd, domain, id);
}
void marker(const Domain* domain, Id id, StringHandle* name, int scope) {
    mark(domain, name);
    tell_next(kMarker, domain, id, name, scope);
}
void marker_ex(const Domain* domain, void* clock, std::uint64_t time, Id id, StringHandle* name,
               int scope) {
    mark(domain, name);
    tell_next(kMarkerEx, domain, clock, time, id, name, scope);
}
void thread_set_name(const char* name) {
    name_thread(0, name);
    tell_next(kThreadName, name);
}

// --- events: named ranges of one thread ---

int event_create(const char* name, int length) {
    return make_event(name, name == nullptr ? 0 : strnlen(name, length < 0 ? 0 : length));
}
int event_start(int event) {
    const char* name = event_name(event);
    const HookScope hook(SourceId::kItt, Writes::kNothing);
    if (name == nullptr || !hook) return 0;
    hook.lane().begin_range(SourceId::kItt, 0, hook.lane().intern_cached(name),
                            push_key(SourceId::kItt, ~static_cast<std::uint64_t>(event)), 0);
    return 0;
}
int event_end(int event) {
    const HookScope hook(SourceId::kItt);
    const std::uint64_t key =
        hook ? pop_key(SourceId::kItt, ~static_cast<std::uint64_t>(event)) : 0;
    if (key != 0) hook.lane().end_range(key);
    return 0;
}

// --- counters ---

template <class Number>
Number read_as(const void* value) {
    Number number;
    std::memcpy(&number, value, sizeof number);
    return number;
}

struct Value {
    PayloadType type = PayloadType::kSigned;
    std::int64_t whole = 0;
    double real = 0;
};

Value read_value(std::int32_t type, const void* value) {
    switch (type) {
        case kNumberS64:
            return {PayloadType::kSigned, read_as<std::int64_t>(value)};
        case kNumberU32:
            return {PayloadType::kUnsigned, read_as<std::uint32_t>(value)};
        case kNumberS32:
            return {PayloadType::kSigned, read_as<std::int32_t>(value)};
        case kNumberU16:
            return {PayloadType::kUnsigned, read_as<std::uint16_t>(value)};
        case kNumberS16:
            return {PayloadType::kSigned, read_as<std::int16_t>(value)};
        case kNumberFloat:
            return {PayloadType::kDouble, 0, read_as<float>(value)};
        case kNumberDouble:
            return {PayloadType::kDouble, 0, read_as<double>(value)};
        default:
            return {PayloadType::kUnsigned, read_as<std::int64_t>(value)};
    }
}

/// The number stands in the argument, whose kind the name tells; whole ones in the value too.
void count(Counter& counter, const Value& value) {
    const HookScope hook(SourceId::kItt);
    if (!hook) return;
    AttributeSet set;
    set.domain = intern_label(hook.lane(), counter.domain);
    set.payload = value.type;
    const NameId name = hook.lane().intern_cached(counter.name, intern_attributes(set));
    std::uint64_t argument = static_cast<std::uint64_t>(value.whole);
    if (value.type == PayloadType::kDouble) std::memcpy(&argument, &value.real, sizeof argument);
    hook.lane().counter(SourceId::kItt, 0, name, static_cast<std::uint64_t>(value.whole), argument);
}

void add(Counter* counter, std::int64_t delta) {
    if (counter == nullptr) return;
    // Counted whether a capture is on or not: the next one tells the whole sum.
    const std::int64_t sum = counter->sum.fetch_add(delta, std::memory_order_relaxed) + delta;
    count(*counter, {PayloadType::kSigned, sum});
}

Counter* counter_create(const char* name, const char* domain) {
    return make_counter(name, domain, kNumberU64);
}
Counter* counter_create_typed(const char* name, const char* domain, std::int32_t type) {
    return make_counter(name, domain, type);
}
Counter* counter_create_v3(const Domain* domain, const char* name, std::int32_t type) {
    return make_counter(name, domain != nullptr ? domain->name : nullptr, type);
}
void counter_inc(Counter* counter) {
    add(counter, 1);
}
void counter_inc_delta(Counter* counter, std::uint64_t delta) {
    add(counter, static_cast<std::int64_t>(delta));
}
void counter_dec(Counter* counter) {
    add(counter, -1);
}
void counter_dec_delta(Counter* counter, std::uint64_t delta) {
    add(counter, -static_cast<std::int64_t>(delta));
}
void counter_set(Counter* counter, void* value) {
    if (counter == nullptr || value == nullptr) return;
    const Value read = read_value(counter->type, value);
    if (read.type != PayloadType::kDouble)
        counter->sum.store(read.whole, std::memory_order_relaxed);
    count(*counter, read);
}
void counter_set_ex(Counter* counter, void*, std::uint64_t, void* value) {
    counter_set(counter, value);
}

// A cast and no function: the compiler fills the table then, not each process at its start.
#define RINGSIDE_ANY(function) reinterpret_cast<AnyFunction>(function)

// The first kForwarded of them in the order of their numbers.
const Call kCalls[] = {
    {"__itt_task_begin", RINGSIDE_ANY(task_begin), Beside::kForward},
    {"__itt_task_begin_fn", RINGSIDE_ANY(task_begin_fn), Beside::kForward},
    {"__itt_task_end", RINGSIDE_ANY(task_end), Beside::kForward},
    {"__itt_task_begin_ex", RINGSIDE_ANY(task_begin_ex), Beside::kForward},
    {"__itt_task_begin_fn_ex", RINGSIDE_ANY(task_begin_fn_ex), Beside::kForward},
    {"__itt_task_end_ex", RINGSIDE_ANY(task_end_ex), Beside::kForward},
    {"__itt_task_begin_overlapped", RINGSIDE_ANY(overlapped_begin), Beside::kForward},
    {"__itt_task_begin_overlapped_ex", RINGSIDE_ANY(overlapped_begin_ex), Beside::kForward},
    {"__itt_task_end_overlapped", RINGSIDE_ANY(overlapped_end), Beside::kForward},
    {"__itt_task_end_overlapped_ex", RINGSIDE_ANY(overlapped_end_ex), Beside::kForward},
    {"__itt_region_begin", RINGSIDE_ANY(region_begin), Beside::kForward},
    {"__itt_region_end", RINGSIDE_ANY(region_end), Beside::kForward},
    {"__itt_frame_begin_v3", RINGSIDE_ANY(frame_begin), Beside::kForward},
    {"__itt_frame_end_v3", RINGSIDE_ANY(frame_end), Beside::kForward},
    {"__itt_marker", RINGSIDE_ANY(marker), Beside::kForward},
    {"__itt_marker_ex", RINGSIDE_ANY(marker_ex), Beside::kForward},
    {"__itt_thread_set_name", RINGSIDE_ANY(thread_set_name), Beside::kForward},
    {"__itt_domain_create", RINGSIDE_ANY(make_domain), Beside::kMakes},
    {"__itt_string_handle_create", RINGSIDE_ANY(make_string), Beside::kMakes},
    {"__itt_event_create", RINGSIDE_ANY(event_create), Beside::kTheirs},
    {"__itt_event_start", RINGSIDE_ANY(event_start), Beside::kTheirs},
    {"__itt_event_end", RINGSIDE_ANY(event_end), Beside::kTheirs},
    {"__itt_counter_create", RINGSIDE_ANY(counter_create), Beside::kTheirs},
    {"__itt_counter_create_typed", RINGSIDE_ANY(counter_create_typed), Beside::kTheirs},
    {"__itt_counter_create_v3", RINGSIDE_ANY(counter_create_v3), Beside::kTheirs},
    {"__itt_counter_inc", RINGSIDE_ANY(counter_inc), Beside::kTheirs},
    {"__itt_counter_inc_delta", RINGSIDE_ANY(counter_inc_delta), Beside::kTheirs},
    {"__itt_counter_dec", RINGSIDE_ANY(counter_dec), Beside::kTheirs},
    {"__itt_counter_dec_delta", RINGSIDE_ANY(counter_dec_delta), Beside::kTheirs},
    {"__itt_counter_set_value", RINGSIDE_ANY(counter_set), Beside::kTheirs},
    {"__itt_counter_set_value_ex", RINGSIDE_ANY(counter_set_ex), Beside::kTheirs},
    {"__itt_counter_set_value_v3", RINGSIDE_ANY(counter_set), Beside::kTheirs},
};
#undef RINGSIDE_ANY
static_assert(sizeof kCalls / sizeof kCalls[0] <= kMostCalls);

}  // namespace

const Call* calls_begin() {
    return kCalls;
}
const Call* calls_end() {
    return kCalls + sizeof kCalls / sizeof kCalls[0];
}

bool remember_next(std::uint32_t call, AnyFunction function) {
    AnyFunction known = nullptr;
    if (g_next[call].compare_exchange_strong(known, function, std::memory_order_relaxed) ||
        known == function)
        return true;
    count_loss(schema::Loss::kHookOtherTarget);
    return false;
}

}  // namespace ringside::inject::itt
