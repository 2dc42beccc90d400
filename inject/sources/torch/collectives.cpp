#include "inject/sources/torch/collectives.hpp"

#include <stdlib.h>

#include <cstring>

#include "inject/core/attributes.hpp"
#include "inject/core/open_calls.hpp"
#include "inject/core/pools.hpp"
#include "inject/sources/torch/abi.hpp"
#include "inject/sources/torch/group_names.hpp"

namespace ringside::inject::torch {
namespace {

enum Hook : std::uint32_t { kHookEnqueue, kHookExecuteByValue, kHookExecuteByReference };

constexpr std::uint32_t kWorkSets = 64;

/// A collective between its being enqueued and its end.
struct Work {
    Collective collective;
    schema::OpenCall* call = nullptr;
    std::int32_t pid =
        0;  ///< whose page the call lies in: a forked child has its parent's works, and none of the threads that would end them
};

void* g_originals[kCollectiveHooks];
std::uint64_t (*g_sequence_number)(void* backend);
// Looked for only in versions that are known to have it where we look.
bool g_groups_have_names;
constinit KeyedTable<Work, kWorkSets> g_works;  // by AsyncWork*
/// Of this process in the default group, which torch names first.
constinit std::atomic<std::int32_t> g_job_rank{-1};
constexpr std::string_view kDefaultGroup = "0";

__thread Collective t_running __attribute__((tls_model("initial-exec")));

template <class Function>
Function* original(Hook hook) {
    return reinterpret_cast<Function*>(g_originals[hook]);
}

/// As gloo's own range is named, from the type of the work.
const char* function_of(const void* work) {
    struct Name {
        const char* type;
        const char* function;
    };
    constexpr Name kNames[] = {
        {"Allreduce", "gloo:all_reduce"}, {"Broadcast", "gloo:broadcast"},
        {"Barrier", "gloo:barrier"},      {"Allgather", "gloo:all_gather"},
        {"Alltoall", "gloo:all_to_all"},  {"ReduceScatter", "gloo:reduce_scatter"},
        {"Reduce", "gloo:reduce"},        {"Gather", "gloo:gather"},
        {"Scatter", "gloo:scatter"},      {"SparseAllreduce", "gloo:sparse_all_reduce"},
    };
    const char* const type = std::strstr(type_name(work), "Async");
    if (type == nullptr) return "gloo";
    for (const Name& name : kNames) {
        if (std::strncmp(type + 5, name.type, std::strlen(name.type)) == 0) return name.function;
    }
    return "gloo";
}

/// Equal at all members: the group's name, and where its job's ranks meet.
std::uint64_t group_id(std::string_view name) {
    // Once, at the first collective: to read the environment while another thread sets a variable is a race, and the program may set these anew.
    static constinit std::atomic<std::uint64_t> meeting_place{0};
    std::uint64_t place = meeting_place.load(std::memory_order_relaxed);
    if (place == 0) {
        place = 1;
        for (const char* variable : {"MASTER_ADDR", "MASTER_PORT"}) {
            const char* const value = getenv(variable);
            if (value != nullptr) place = schema::hash_bytes(value, std::strlen(value), place);
        }
        meeting_place.store(place, std::memory_order_relaxed);
    }
    const std::uint64_t id = schema::hash_bytes(name.data(), name.size(), place);
    return id != 0 ? id : 1;
}

/// The process waits from now on for the others of the group.
schema::OpenCall* open_call(const void* work, const GroupPlace& place, std::uint64_t sequence) {
    schema::OpenCall* const call = claim_open_call();
    if (call == nullptr) return nullptr;
    std::uint64_t id = 0;
    if (!place.name.empty()) {
        id = group_id(place.name);
        if (place.name == kDefaultGroup) g_job_rank.store(place.rank, std::memory_order_relaxed);
        advance_group(claim_group({SourceId::kTorch, id, place.name.data(),
                                   static_cast<std::uint32_t>(place.size), place.rank,
                                   g_job_rank.load(std::memory_order_relaxed)}),
                      id, sequence);
    }
    begin_open_call(call, {SourceId::kTorch, function_of(work), id, sequence}, now());
    return call;
}

void end_work(const Work& work) {
    if (work.pid == g_process.header->pid) release_open_call(work.call);
}

void wrap_enqueue(void* backend, void** enqueued) {
    using Enqueue = void(void*, void**);
    if (*enqueued != nullptr) {
        Work work;
        work.pid = g_process.header->pid;
        if (g_sequence_number != nullptr) work.collective.sequence = g_sequence_number(backend);
        const GroupPlace place =
            group_place(static_cast<const char*>(backend), g_groups_have_names);
        {
            HookScope hook(Writes::kNothing);
            if (hook) {
                AttributeSet set;
                if (!place.name.empty())
                    set.category = intern_label(hook.lane(), place.name.data());
                set.payload = schema::PayloadType::kUnsigned;
                work.collective.attributes = intern_attributes(set);
            }
        }
        work.call = open_call(*enqueued, place, work.collective.sequence);
        const auto key = reinterpret_cast<std::uint64_t>(*enqueued);
        Work never_run;
        if (g_works.take(key, &never_run)) end_work(never_run);
        if (!g_works.put(key, work)) {
            end_work(work);
            if ((capture_word() & 1) != 0) count_loss(schema::Loss::kTableFull);
        }
    }
    original<Enqueue>(kHookEnqueue)(backend, enqueued);
}

template <Hook kHook>
void wrap_execute(void* const* executed) {
    using Execute = void(void* const*);
    Work work;
    g_works.take(reinterpret_cast<std::uint64_t>(*executed), &work);
    t_running = work.collective;
    original<Execute>(kHook)(executed);
    t_running = {};
    end_work(work);
}

}  // namespace

void add_collective_hooks(SlotHook* hooks) {
    const SlotHook all[kCollectiveHooks] = {
        {kGlooEnqueue, reinterpret_cast<void*>(wrap_enqueue), &g_originals[kHookEnqueue], 0, true},
        {kGlooExecuteByValue, reinterpret_cast<void*>(wrap_execute<kHookExecuteByValue>),
         &g_originals[kHookExecuteByValue], 0, true},
        {kGlooExecuteByReference, reinterpret_cast<void*>(wrap_execute<kHookExecuteByReference>),
         &g_originals[kHookExecuteByReference], 0, true},
    };
    std::memcpy(hooks, all, sizeof all);
}

void prepare_collectives(SlotSet& libraries) {
    void* const number = find_symbol(libraries, kGlooSequenceNumber);
    if (number != nullptr) g_sequence_number = reinterpret_cast<std::uint64_t (*)(void*)>(number);
    g_groups_have_names = find_symbol(libraries, kGlooExecuteByReference) != nullptr;
    write_staying_slots(libraries);
}

Collective take_collective() {
    const Collective collective = t_running;
    t_running = {};
    return collective;
}

}  // namespace ringside::inject::torch
