#include "inject/sources/cupti/devices.hpp"

#include <atomic>
#include <type_traits>

#include "inject/sources/cupti/abi.hpp"
#include "inject/sources/cupti/library.hpp"
#include "schema/gpu_record.hpp"

namespace ringside::inject::cupti {
namespace {

constexpr std::int32_t kMostDevices = 64;
constexpr std::int32_t kNameBytes = 96;

struct Device {
    schema::GpuDeviceRecord record;
    char name[kNameBytes];
};
Device g_devices[kMostDevices];
std::atomic<std::int32_t> g_count{0};
std::atomic<bool> g_asked{false};

/// The driver's functions. A device is its number here: cuDeviceGet() hands out nothing else.
struct Driver {
    Result (*count)(std::int32_t*);
    Result (*get)(std::int32_t*, std::int32_t);
    Result (*name)(char*, std::int32_t, std::int32_t);
    Result (*memory)(std::size_t*, std::int32_t);
    Result (*attribute)(std::int32_t*, std::int32_t, std::int32_t);

    bool find(const Shim& shim) {
        void* library = find_driver(shim);
        const auto look_up = [&](const char* symbol, auto& function) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
                shim.look_up(library, symbol));
            return function != nullptr;
        };
        return library != nullptr && look_up("cuDeviceGetCount", count) &&
               look_up("cuDeviceGet", get) && look_up("cuDeviceGetName", name) &&
               look_up("cuDeviceTotalMem_v2", memory) && look_up("cuDeviceGetAttribute", attribute);
    }
    std::uint32_t ask(std::int32_t device, DeviceAttribute what) const {
        std::int32_t value = 0;
        return attribute(&value, what, device) == kSuccess ? static_cast<std::uint32_t>(value) : 0;
    }
};

bool read_device(const Driver& driver, std::int32_t number, Device& out) {
    std::int32_t device = 0;
    std::size_t memory = 0;
    if (driver.get(&device, number) != kSuccess) return false;
    if (driver.name(out.name, kNameBytes, device) != kSuccess) out.name[0] = 0;
    if (driver.memory(&memory, device) != kSuccess) memory = 0;
    out.record = {};
    out.record.memory_bytes = memory;
    out.record.device = static_cast<std::uint32_t>(number);
    out.record.processors = driver.ask(device, kProcessors);
    out.record.capability_major = driver.ask(device, kCapabilityMajor);
    out.record.capability_minor = driver.ask(device, kCapabilityMinor);
    out.record.block_threads = driver.ask(device, kBlockThreads);
    out.record.processor_threads = driver.ask(device, kProcessorThreads);
    out.record.block_registers = driver.ask(device, kBlockRegisters);
    out.record.processor_registers = driver.ask(device, kProcessorRegisters);
    out.record.block_shared_bytes = driver.ask(device, kBlockShared);
    out.record.processor_shared_bytes = driver.ask(device, kProcessorShared);
    out.record.block_shared_most_bytes = driver.ask(device, kBlockSharedMost);
    out.record.warp_threads = driver.ask(device, kWarp);
    out.record.processor_blocks = driver.ask(device, kProcessorBlocks);
    return true;
}

}  // namespace

void read_devices(const Shim& shim) {
    if (g_asked.exchange(true, std::memory_order_relaxed)) return;
    Driver driver{};
    std::int32_t there = 0, count = 0;
    if (!driver.find(shim) || driver.count(&there) != kSuccess) return;
    for (std::int32_t i = 0; i < there && count < kMostDevices; ++i)
        count += read_device(driver, i, g_devices[count]) ? 1 : 0;
    // SYNC(devices): they are whole; pairs with the acquire in put_devices().
    g_count.store(count, std::memory_order_release);
}

void put_devices(LaneHandle* lane, const Shim& shim, std::uint64_t ticks) {
    // SYNC(devices): pairs with the release in read_devices().
    const std::int32_t count = g_count.load(std::memory_order_acquire);
    for (std::int32_t i = 0; i < count; ++i) {
        schema::GpuDeviceRecord record = g_devices[i].record;
        record.ticks = ticks;
        record.header = schema::RecordHeader{schema::RecordKind::kGpuDevice, 3,
                                             schema::record_flags(schema::SourceId::kCupti, 0),
                                             schema::NameId{shim.intern(lane, g_devices[i].name)}}
                            .pack();
        shim.put(lane, &record, sizeof record / schema::kCellBytes, ticks);
    }
}

}  // namespace ringside::inject::cupti
