// The public API's functions in a traced process. ringside.h finds them by `ringside_api`; Python's module does, too.
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "inject/core/attributes.hpp"
#include "inject/core/emit.hpp"
#include "inject/core/intern.hpp"
#include "inject/core/process.hpp"
#include "inject/core/push_depth.hpp"
#include "inject/core/source.hpp"
#include "inject/core/thread_names.hpp"
#include "inject/sources/api/iterations.hpp"
#include "inject/sources/api/ringside.h"
#include "inject/sources/api/rpc_calls.hpp"

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

constexpr std::uint32_t kIterationNames = 256;
constinit Iterations g_iterations[kIterationNames]{};

void iteration(const char* name) {
    const HookScope hook(SourceId::kApi);
    if (!hook || name == nullptr) return;
    const NameId id = hook.lane().intern_cached(name);
    const std::uint64_t wanted = static_cast<std::uint64_t>(hook.word()) << 32 | id.value;
    for (Iterations& entry : g_iterations) {
        if (!find_or_take(entry, wanted)) continue;
        const std::uint64_t number = next_number(entry, hook.word());
        // What comes when its capture is over is none of it.
        if (number != 0) hook.lane().iteration(SourceId::kApi, id, number, 0);
        return;
    }
    count_loss(schema::Loss::kTableFull);
}

// --- who is who ---

void thread_name(const char* name) {
    name_thread(0, name);
}

/// @param kSource  whose RPC halves they write
template <SourceId kSource>
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
    client_begin<kSource>,
    client_end<kSource>,
    server_begin<kSource>,
    server_end<kSource>,
    serve<kSource>,
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
    return &inject::api::kFunctions<schema::SourceId::kApi>;
}

/// The same for those who tell of gRPC in its stead: RPC halves are gRPC's, so that --sources has them with it.
extern "C" __attribute__((visibility("default"))) const ringside_functions* ringside_grpc_api(
    std::uint32_t bytes) {
    using namespace ringside;
    if (bytes > sizeof(ringside_functions)) return nullptr;
    return &inject::api::kFunctions<schema::SourceId::kGrpc>;
}
