#include "inject/sources/torch/memory.hpp"

#include <iterator>

#include "inject/core/attributes.hpp"
#include "inject/core/emit.hpp"
#include "inject/core/pools.hpp"
#include "inject/sources/torch/abi.hpp"

namespace ringside::inject::torch {
namespace {

enum Hook : std::uint32_t { kHookNew, kHookDelete, kHookReport, kHookReportSigned, kHookCount };

constexpr std::uint32_t kLiveSets = 8192;

void* g_originals[kHookCount];
constinit KeyedTable<std::uint64_t, kLiveSets> g_live;  // bytes by address

// The open ranges of a thread hold what it allocates; a record of its own keeps time and order.
void record(ThreadLane& lane, schema::TorchDevice device, std::uint64_t address,
            std::int64_t bytes) {
    AttributeSet set;
    set.payload = schema::PayloadType::kSigned;
    const NameId name = lane.intern_cached(schema::kMemoryName, intern_attributes(set));
    lane.mark(SourceId::kTorch, static_cast<std::uint8_t>(device), name, address,
              static_cast<std::uint64_t>(bytes));
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
            record(hook.lane(), schema::TorchDevice::kCpu, address,
                   static_cast<std::int64_t>(bytes));
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
            record(hook.lane(), schema::TorchDevice::kCpu, address,
                   -static_cast<std::int64_t>(bytes));
    }
    reinterpret_cast<Delete*>(g_originals[kHookDelete])(reporter, data);
}

template <Hook kHook>
void wrap_report(void* data, std::int64_t bytes, std::uint64_t allocated, std::uint64_t reserved,
                 std::uint32_t device) {
    using Report = void(void*, std::int64_t, std::uint64_t, std::uint64_t, std::uint32_t);
    {
        HookScope hook;
        constexpr auto kCuda = schema::TorchDevice::kCuda;
        if (hook && bytes != 0 && (device & 0xff) == static_cast<std::uint32_t>(kCuda))
            record(hook.lane(), kCuda, reinterpret_cast<std::uint64_t>(data), bytes);
    }
    reinterpret_cast<Report*>(g_originals[kHook])(data, bytes, allocated, reserved, device);
}

SlotHook g_hooks[] = {
    {kMemoryNew, reinterpret_cast<void*>(wrap_new), &g_originals[kHookNew], 0},
    {kMemoryDelete, reinterpret_cast<void*>(wrap_delete), &g_originals[kHookDelete], 0},
};

SlotHook g_cuda_hooks[] = {
    {kReportMemory, reinterpret_cast<void*>(wrap_report<kHookReport>), &g_originals[kHookReport],
     0},
    {kReportMemorySigned, reinterpret_cast<void*>(wrap_report<kHookReportSigned>),
     &g_originals[kHookReportSigned], 0},
};

SlotSet g_slots = {{"libc10.so"}, {"libc10.so"}, g_hooks, std::size(g_hooks)};
SlotSet g_cuda_slots = {{"libc10.so"}, {"libc10_cuda.so"}, g_cuda_hooks, std::size(g_cuda_hooks)};

}  // namespace

MemorySlots prepare_memory() {
    scan_slots(g_slots);
    const bool cuda = scan_slots(g_cuda_slots) != 0 || !object_loaded("libc10_cuda.so");
    return {g_hooks[0].slots != 0 && g_hooks[1].slots != 0, cuda};
}

void attach_memory() {
    write_slots(g_slots, true);
    write_slots(g_cuda_slots, true);
}

void detach_memory() {
    write_slots(g_slots, false);
    write_slots(g_cuda_slots, false);
    g_live.clear();
}

}  // namespace ringside::inject::torch
