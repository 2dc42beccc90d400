// The public API's functions in a traced process. ringside.h finds them by `ringside_api`; Python's module does, too.
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "inject/core/attributes.hpp"
#include "inject/core/emit.hpp"
#include "inject/core/intern.hpp"
#include "inject/core/kept_memory.hpp"
#include "inject/core/process.hpp"
#include "inject/core/push_depth.hpp"
#include "inject/core/source.hpp"
#include "inject/core/thread_names.hpp"
#include "inject/sources/api/ringside.h"

namespace ringside::inject::api {
namespace {

using schema::PayloadType;

struct Event {
    NameId name;
    std::uint64_t payload = 0;
};

/// @param given  as long as its caller's header knows it
ringside_attributes read_attributes(const ringside_attributes* given) {
    ringside_attributes attributes{};
    if (given != nullptr) {
        std::memcpy(&attributes, given,
                    given->size < sizeof attributes ? given->size : sizeof attributes);
    }
    return attributes;
}

Event read_event(ThreadLane& lane, const char* name, const ringside_attributes& attributes) {
    AttributeSet set;
    set.domain = intern_label(lane, attributes.domain);
    set.category = intern_label(lane, attributes.category);
    set.colour = attributes.colour;
    const bool known = attributes.payload_type <= RINGSIDE_DOUBLE;
    set.payload = known ? static_cast<PayloadType>(attributes.payload_type) : PayloadType::kNone;
    const schema::AttributeId id = intern_attributes(set);
    return {lane.intern_cached(name != nullptr ? name : "", id),
            set.payload == PayloadType::kNone ? 0 : attributes.payload.u};
}

std::uint64_t domain_number(const char* domain) {
    return domain == nullptr || *domain == 0 ? 0 : schema::hash_bytes(domain, std::strlen(domain));
}

int active() {
    return static_cast<int>(capture_word() & 1);
}

/// The counter of ranges without a domain.
constexpr std::uint32_t kNoDomain = PushKeys::no_domain(SourceId::kApi);

/// Out of line, so that the common way keeps no register for it.
[[gnu::noinline]] void push_with_care(const char* name, const ringside_attributes* given) {
    const HookScope hook(SourceId::kApi, Writes::kNothing);
    if (!hook) return;
    const ringside_attributes attributes = read_attributes(given);
    const Event event = read_event(hook.lane(), name, attributes);
    hook.lane().begin_range(SourceId::kApi, 0, event.name,
                            push_key(SourceId::kApi, domain_number(attributes.domain)),
                            event.payload);
}

[[gnu::noinline]] void pop_with_care(const char* domain) {
    const HookScope hook(SourceId::kApi);
    const std::uint64_t key = hook ? pop_key(SourceId::kApi, domain_number(domain)) : 0;
    if (key != 0) hook.lane().end_range(key);
}

[[gnu::noinline]] void push_unknown(ringside_name* name) {
    const HookScope hook(SourceId::kApi, Writes::kNothing);
    if (!hook) return;
    const NameId id = hook.lane().intern_cached(name->text != nullptr ? name->text : "");
    // Relaxed: the word is all that there is to see; the table's entry was there before any thread had its id.
    std::atomic_ref(name->known).store(keep_name(id), std::memory_order_relaxed);
    hook.lane().begin_range(SourceId::kApi, 0, id, push_key(SourceId::kApi, 0), 0);
}

// Flat: whatever the compiler thinks of their size, a pair's two functions call nothing. The header has seen that the word is odd.
[[gnu::flatten]] void push_name(std::uint32_t word, ringside_name* name) {
    NameId known;
    if (!find_kept_name(std::atomic_ref(name->known).load(std::memory_order_relaxed), known) ||
        !push_at_once(SourceId::kApi, kNoDomain, word, known)) [[unlikely]]
        push_unknown(name);
}

[[gnu::flatten]] void push_text(std::uint32_t word, const char* name) {
    const NameId known = g_address_cache.find(name);
    if (known == schema::kNoName) [[unlikely]]
        return push_new_name(SourceId::kApi, name);
    if (!push_at_once(SourceId::kApi, kNoDomain, word, known)) [[unlikely]]
        push_with_care(name, nullptr);
}

[[gnu::flatten]] void pop(std::uint32_t word) {
    if (!pop_at_once(SourceId::kApi, kNoDomain, word)) [[unlikely]]
        pop_with_care(nullptr);
}

// As Python's module and older headers call them, and for ranges with attributes or a domain.
void range_push(const char* name, const ringside_attributes* given) {
    const std::uint32_t word = capture_word();
    if ((word & 1) == 0) [[likely]]
        return;
    if (given != nullptr || name == nullptr) return push_with_care(name, given);
    push_text(word, name);
}

void range_pop(const char* domain) {
    const std::uint32_t word = capture_word();
    if ((word & 1) == 0) [[likely]]
        return;
    if (domain != nullptr) return pop_with_care(domain);
    pop(word);
}

std::uint64_t range_start(const char* name, const ringside_attributes* given) {
    const HookScope hook(SourceId::kApi);
    if (!hook) return 0;
    const Event event = read_event(hook.lane(), name, read_attributes(given));
    const std::uint64_t key = next_key();
    hook.lane().async_begin(SourceId::kApi, 0, event.name, key, event.payload);
    return key;
}

void range_end(std::uint64_t id) {
    const HookScope hook(SourceId::kApi);
    if (hook && id != 0) hook.lane().async_end(SourceId::kApi, 0, schema::kNoName, id, 0);
}

void mark(const char* name, const ringside_attributes* given) {
    const HookScope hook(SourceId::kApi);
    if (!hook) return;
    const Event event = read_event(hook.lane(), name, read_attributes(given));
    hook.lane().mark(SourceId::kApi, 0, event.name, 0, event.payload);
}

void counter(const char* name, const ringside_attributes* given) {
    const HookScope hook(SourceId::kApi);
    if (!hook) return;
    const Event event = read_event(hook.lane(), name, read_attributes(given));
    hook.lane().counter(SourceId::kApi, 0, event.name, event.payload, event.payload);
}

// --- iterations: counted by name, in the whole process, anew in each capture ---

struct Iterations {
    std::atomic<std::uint64_t> name;  ///< capture word << 32 | NameId; 0: free
    std::atomic<std::uint64_t> count;
};
constexpr std::uint32_t kIterationNames = 256;
constinit Iterations g_iterations[kIterationNames]{};

void iteration(const char* name) {
    const HookScope hook(SourceId::kApi);
    if (!hook || name == nullptr) return;
    const NameId id = hook.lane().intern_cached(name);
    const std::uint64_t wanted = static_cast<std::uint64_t>(hook.word()) << 32 | id.value;
    for (Iterations& entry : g_iterations) {
        std::uint64_t present = entry.name.load(std::memory_order_acquire);
        // Free, or of a capture that is over.
        if (present >> 32 != wanted >> 32 &&
            entry.name.compare_exchange_strong(present, wanted, std::memory_order_acq_rel)) {
            entry.count.store(0, std::memory_order_relaxed);
            present = wanted;
        }
        if (present != wanted) continue;
        const std::uint64_t count = entry.count.fetch_add(1, std::memory_order_relaxed) + 1;
        return hook.lane().iteration(SourceId::kApi, id, count, 0);
    }
    count_loss(schema::Loss::kTableFull);
}

// --- who is who ---

void thread_name(const char* name) {
    name_thread(0, name);
}

/// A worker's name is told while nothing is captured, as a rule: it is interned when there is a lane.
struct Worker {
    std::atomic<const char*> name;
    std::atomic<const char*> told;
    std::atomic<std::int32_t> id;
};
constinit Worker g_worker{};

void tell_worker(ThreadLane& lane) {
    // SYNC(worker): pairs with the release below.
    const char* name = g_worker.name.load(std::memory_order_acquire);
    if (name == g_worker.told.load(std::memory_order_relaxed)) return;
    g_worker.told.store(name, std::memory_order_relaxed);
    inject::set_worker(intern_label(lane, name), g_worker.id.load(std::memory_order_relaxed));
}

void set_worker(const char* name, std::int32_t id) {
    const char* kept = name != nullptr ? keep_text(name, std::strlen(name)) : nullptr;
    if (kept == nullptr) return;
    g_worker.id.store(id, std::memory_order_relaxed);
    // SYNC(worker): the id stands before the name.
    g_worker.name.store(kept, std::memory_order_release);
    const HookScope hook(SourceId::kApi);
    if (hook) tell_worker(hook.lane());
}

// --- RPCs ---

/// Unique among the job's processes: what the segment's name is made of, and a key of it.
std::uint64_t unique_word(std::uint64_t key, std::uint64_t salt) {
    const schema::SegmentHeader& header = *g_process.header;
    std::uint64_t hash = schema::mix64(header.start_ticks ^ salt);
    hash =
        schema::mix64(hash ^ static_cast<std::uint64_t>(header.pid) << 32 ^ header.pid_namespace);
    hash = schema::mix64(hash ^ static_cast<std::uint64_t>(header.load_clock.realtime_ns));
    hash = schema::mix64(hash ^ key);
    return hash == 0 ? 1 : hash;
}

RpcBegin describe(ThreadLane& lane, const ringside_rpc* given, schema::RpcSide side) {
    ringside_rpc what{};
    if (given != nullptr)
        std::memcpy(&what, given, given->size < sizeof what ? given->size : sizeof what);
    RpcBegin begin;
    begin.source = SourceId::kApi;
    begin.side = side;
    begin.mode = what.mode == RINGSIDE_SYNC    ? schema::RpcMode::kSync
                 : what.mode == RINGSIDE_ASYNC ? schema::RpcMode::kAsync
                                               : schema::RpcMode::kUnknown;
    begin.key = next_key();
    begin.bytes = what.bytes;
    begin.module = intern_label(lane, what.service);
    begin.peer = intern_label(lane, what.peer);
    tell_worker(lane);
    begin.self = {g_process.header->worker_name.load(std::memory_order_relaxed)};
    begin.self_id =
        static_cast<std::int16_t>(g_process.header->worker_id.load(std::memory_order_relaxed));
    // The last one that is interned: where the table is full its bytes go inline, before this record.
    begin.function = lane.intern_cached(what.method != nullptr ? what.method : "");
    return begin;
}

Context context_of(std::uint64_t key, const ringside_request& id) {
    return {key, {id.trace_hi, id.trace_lo}, {id.span}};
}

ringside_request request_of(const Context& context) {
    return {context.trace.hi, context.trace.lo, context.span.value};
}

void client_begin(const ringside_rpc* what, ringside_call* call) {
    const HookScope hook(SourceId::kApi);
    if (!hook || call == nullptr) return;
    RpcBegin begin = describe(hook.lane(), what, schema::RpcSide::kClient);
    // A call made while serving belongs to that request's trace; another one is the root of its own.
    const Context& context = hook.lane().context();
    begin.parent_key = context.key;
    begin.id.trace = context.trace.valid()
                         ? context.trace
                         : schema::TraceId{unique_word(begin.key, 1), unique_word(begin.key, 2)};
    begin.id.span = {unique_word(begin.key, 3)};
    hook.lane().rpc_begin(begin);
    *call = {};
    call->key = begin.key;
    call->id = {begin.id.trace.hi, begin.id.trace.lo, begin.id.span.value};
}

schema::RpcStatus status_of(std::uint32_t status) {
    return status <= RINGSIDE_PEER_GONE ? static_cast<schema::RpcStatus>(status)
                                        : schema::RpcStatus::kError;
}

void client_end(const ringside_call* call, std::uint32_t status, std::uint64_t bytes) {
    const HookScope hook(SourceId::kApi);
    if (hook && call != nullptr && call->key != 0)
        hook.lane().rpc_end(SourceId::kApi, call->key, status_of(status), bytes);
}

void serve(ringside_call* call, int on) {
    const HookScope hook(SourceId::kApi);
    if (!hook || call == nullptr || call->key == 0) return;
    ThreadLane& lane = hook.lane();
    if (on != 0) {
        call->before_key = lane.context().key;
        call->before = request_of(lane.context());
        lane.set_context(context_of(call->key, call->id));
    } else if (lane.context().key == call->key) {
        lane.set_context(context_of(call->before_key, call->before));
    }
}

void server_begin(const ringside_request* id, const ringside_rpc* what, ringside_call* call) {
    if (call == nullptr) return;
    *call = {};
    {
        const HookScope hook(SourceId::kApi);
        if (!hook) return;
        RpcBegin begin = describe(hook.lane(), what, schema::RpcSide::kServer);
        if (id != nullptr) begin.id = {{id->trace_hi, id->trace_lo}, {id->span}};
        hook.lane().rpc_begin(begin);
        call->key = begin.key;
        call->id = {begin.id.trace.hi, begin.id.trace.lo, begin.id.span.value};
    }
    serve(call, 1);
}

void server_end(const ringside_call* call, std::uint32_t status, std::uint64_t bytes) {
    if (call == nullptr || call->key == 0) return;
    ringside_call copy = *call;
    serve(&copy, 0);
    const HookScope hook(SourceId::kApi);
    if (hook) hook.lane().rpc_end(SourceId::kApi, call->key, status_of(status), bytes);
}

constexpr ringside_functions kFunctions = {
    sizeof(ringside_functions),
    1,
    active,
    range_push,
    range_pop,
    range_start,
    range_end,
    mark,
    counter,
    iteration,
    thread_name,
    set_worker,
    client_begin,
    client_end,
    server_begin,
    server_end,
    serve,
    &g_living.word_distance,
    &kOffWord,
    push_name,
    push_text,
    pop,
};

}  // namespace
}  // namespace ringside::inject::api

/// @param bytes  of the table that the caller knows
/// @return null where it is longer than ours: the program was built with a newer header
extern "C" __attribute__((visibility("default"))) const ringside_functions* ringside_api(
    std::uint32_t bytes) {
    using namespace ringside;
    if (bytes > sizeof(ringside_functions)) return nullptr;
    // A process that is not traced gets them too: they find the word off. So may one whose constructor of ours is still to come.
    inject::announce_source(schema::SourceId::kApi, schema::SourceLevel::kFull, "");
    return &inject::api::kFunctions;
}
