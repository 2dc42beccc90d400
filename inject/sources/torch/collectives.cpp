#include "inject/sources/torch/collectives.hpp"

#include <cstring>

#include "inject/core/attributes.hpp"
#include "inject/sources/torch/abi.hpp"
#include "inject/sources/torch/pools.hpp"
#include "inject/sources/torch/worker_info.hpp"

namespace ringside::inject::torch {
namespace {

enum Hook : std::uint32_t { kHookEnqueue, kHookExecuteByValue, kHookExecuteByReference };

constexpr std::uint32_t kWorkSets = 64;

void* g_originals[kCollectiveHooks];
std::uint64_t (*g_sequence_number)(void* backend);
// Looked for only in versions that are known to have it where we look.
bool g_groups_have_names;
constinit KeyedTable<Collective, kWorkSets> g_works;  // by AsyncWork*

__thread Collective t_running __attribute__((tls_model("initial-exec")));

template <class Function>
Function* original(Hook hook) {
    return reinterpret_cast<Function*>(g_originals[hook]);
}

/// c10d::Backend {vptr, counts, int rank_, int size_, DebugLevel, std::string pg_uid_, ...}.
const char* group_name(const char* backend) {
    if (!g_groups_have_names) return nullptr;
    std::int32_t rank = -1, size = 0;
    std::memcpy(&rank, backend + kBackendRank, sizeof rank);
    std::memcpy(&size, backend + kBackendRank + sizeof rank, sizeof size);
    const char* const text = backend + kBackendGroupName;
    if (rank < 0 || rank >= size || string_shape(text) == StringShape::kNone) return nullptr;
    return string_text(reinterpret_cast<const char* const*>(text)).data();
}

void wrap_enqueue(void* backend, void** work) {
    using Enqueue = void(void*, void**);
    {
        HookScope hook(Writes::kNothing);
        if (hook && *work != nullptr) {
            Collective collective;
            if (g_sequence_number != nullptr) collective.sequence = g_sequence_number(backend);
            const char* const group = group_name(static_cast<const char*>(backend));
            AttributeSet set;
            if (group != nullptr) set.category = intern_label(hook.lane(), group);
            set.payload = schema::PayloadType::kUnsigned;
            collective.attributes = intern_attributes(set);
            if (!g_works.put(reinterpret_cast<std::uint64_t>(*work), collective))
                count_loss(schema::Loss::kTableFull);
        }
    }
    original<Enqueue>(kHookEnqueue)(backend, work);
}

template <Hook kHook>
void wrap_execute(void* const* work) {
    using Execute = void(void* const*);
    t_running = {};
    {
        HookScope hook(Writes::kNothing);
        if (hook) g_works.take(reinterpret_cast<std::uint64_t>(*work), &t_running);
    }
    original<Execute>(kHook)(work);
    t_running = {};
}

}  // namespace

void add_collective_hooks(SlotHook* hooks) {
    const SlotHook all[kCollectiveHooks] = {
        {kGlooEnqueue, reinterpret_cast<void*>(wrap_enqueue), &g_originals[kHookEnqueue], 0},
        {kGlooExecuteByValue, reinterpret_cast<void*>(wrap_execute<kHookExecuteByValue>),
         &g_originals[kHookExecuteByValue], 0},
        {kGlooExecuteByReference, reinterpret_cast<void*>(wrap_execute<kHookExecuteByReference>),
         &g_originals[kHookExecuteByReference], 0},
    };
    std::memcpy(hooks, all, sizeof all);
}

void prepare_collectives(const SlotSet& libraries) {
    void* const number = find_symbol(libraries, kGlooSequenceNumber);
    if (number != nullptr) g_sequence_number = reinterpret_cast<std::uint64_t (*)(void*)>(number);
    g_groups_have_names = find_symbol(libraries, kGlooExecuteByReference) != nullptr;
}

void forget_collectives() {
    g_works.clear();
}

Collective take_collective() {
    const Collective collective = t_running;
    t_running = {};
    return collective;
}

}  // namespace ringside::inject::torch
