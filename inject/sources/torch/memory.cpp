#include "inject/sources/torch/memory.hpp"

#include "inject/core/attributes.hpp"
#include "inject/core/emit.hpp"
#include "inject/sources/torch/abi.hpp"
#include "inject/sources/torch/pools.hpp"

namespace ringside::inject::torch {
namespace {

enum Hook : std::uint32_t { kHookNew, kHookDelete, kHookCount };

constexpr std::uint32_t kLiveSets = 8192;

void* g_originals[kHookCount];
constinit KeyedTable<std::uint64_t, kLiveSets> g_live;  // bytes by address

// The open ranges of a thread hold what it allocates; a record of its own keeps time and order.
void record(ThreadLane& lane, std::uint64_t address, std::int64_t bytes) {
    AttributeSet set;
    set.payload = schema::PayloadType::kSigned;
    const NameId name = lane.intern_cached(schema::kMemoryName, intern_attributes(set));
    lane.mark(SourceId::kTorch, 0, name, address, static_cast<std::uint64_t>(bytes));
}

void wrap_new(void* reporter, void* data, std::size_t bytes) {
    using New = void(void*, void*, std::size_t);
    {
        HookScope hook;
        const auto address = reinterpret_cast<std::uint64_t>(data);
        if (hook && bytes != 0) {
            std::uint64_t gone_unseen = 0;
            g_live.take(address, &gone_unseen);
            if (!g_live.put(address, bytes)) count_loss(schema::Loss::kTableFull);
            record(hook.lane(), address, static_cast<std::int64_t>(bytes));
        }
    }
    reinterpret_cast<New*>(g_originals[kHookNew])(reporter, data, bytes);
}

void wrap_delete(void* reporter, void* data) {
    using Delete = void(void*, void*);
    {
        HookScope hook;
        const auto address = reinterpret_cast<std::uint64_t>(data);
        std::uint64_t bytes = 0;
        if (hook && g_live.take(address, &bytes))
            record(hook.lane(), address, -static_cast<std::int64_t>(bytes));
    }
    reinterpret_cast<Delete*>(g_originals[kHookDelete])(reporter, data);
}

SlotHook g_hooks[kHookCount] = {
    {kMemoryNew, reinterpret_cast<void*>(wrap_new), &g_originals[kHookNew], 0},
    {kMemoryDelete, reinterpret_cast<void*>(wrap_delete), &g_originals[kHookDelete], 0},
};

SlotSet g_slots = {{"libc10.so"}, {"libc10.so"}, g_hooks, kHookCount};

}  // namespace

bool prepare_memory() {
    scan_slots(g_slots);
    return g_hooks[kHookNew].slots != 0 && g_hooks[kHookDelete].slots != 0;
}

void attach_memory() {
    write_slots(g_slots, true);
}

void detach_memory() {
    write_slots(g_slots, false);
    g_live.clear();
}

}  // namespace ringside::inject::torch
