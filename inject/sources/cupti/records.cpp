#include "inject/sources/cupti/records.hpp"

#include <atomic>

#include "inject/sources/cupti/devices.hpp"

namespace ringside::inject::cupti {
namespace {

using schema::NameId;
using schema::RecordHeader;
using schema::RecordKind;

std::uint64_t header_of(RecordKind kind, NameId name, std::uint32_t detail) {
    return RecordHeader{kind, static_cast<std::uint8_t>(schema::record_cells(kind)),
                        schema::record_flags(schema::SourceId::kCupti,
                                             static_cast<std::uint8_t>(detail < 16 ? detail : 0)),
                        name}
        .pack();
}

// --- names of functions, by CUPTI's number of them ---

constexpr std::uint32_t kNumbers = 1024;
std::atomic<std::uint32_t> g_function_names[2][kNumbers];

/// cudaLaunchKernel_v7000: the runtime's bear the version that they came with.
std::size_t length_without_version(const char* name) {
    const std::size_t length = std::strlen(name);
    std::size_t at = length;
    while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9') --at;
    const bool versioned = length - at >= 4 && at > 2 && name[at - 1] == 'v' && name[at - 2] == '_';
    return versioned ? at - 2 : length;
}

NameId function_name(LaneHandle* lane, const Delivery& delivery, std::uint32_t domain,
                     std::uint32_t number) {
    std::atomic<std::uint32_t>* const known =
        number < kNumbers ? &g_function_names[domain == kDomainRuntime ? 1 : 0][number] : nullptr;
    if (known != nullptr) {
        if (const auto id = known->load(std::memory_order_relaxed)) return {id};
    }
    const char* name = nullptr;
    FixedText<128> text;
    if (delivery.cupti->callback_name(domain, number, &name) == kSuccess && name != nullptr) {
        text.append(name,
                    domain == kDomainRuntime ? length_without_version(name) : std::strlen(name));
    } else {
        text.append(domain == kDomainRuntime ? "cuda runtime #" : "cuda driver #");
        text.append_number(number);
    }
    const NameId id{delivery.shim->intern(lane, text.c_str())};
    if (known != nullptr && id != schema::kInlineName)
        known->store(id.value, std::memory_order_relaxed);
    return id;
}

// --- one record ---

/// A delivery while it is read.
struct Reading {
    LaneHandle* lane;
    const Delivery* delivery;
    std::uint64_t near_ticks;  ///< of the last record that had a time
    std::uint64_t lost = 0;

    template <class Record>
    void put(const Record& record, std::uint64_t ticks) {
        delivery->shim->put(lane, &record, sizeof record / schema::kCellBytes, ticks);
    }
    /// Whether a record has both of its times; one that has not was not done when it was handed over.
    bool timed(std::uint64_t begin, std::uint64_t end) {
        if (begin == 0 || end < begin) {
            ++lost;
            return false;
        }
        near_ticks = begin;
        return true;
    }
};

schema::GpuPlace place_of(const void* from, U32 correlation, U32 device, U32 context, U32 stream) {
    return {correlation.of(from), device.of(from), context.of(from), stream.of(from)};
}

void put_kernel(Reading& reading, const void* from) {
    using namespace kernel;
    schema::GpuKernelRecord record{};
    record.begin = kStart.of(from);
    record.end = kEnd.of(from);
    if (!reading.timed(record.begin, record.end)) return;
    const char* name = kName.of(from);
    const NameId id =
        name != nullptr ? NameId{reading.delivery->shim->intern(reading.lane, name)} : NameId{};
    record.header = header_of(RecordKind::kGpuKernel, id, 0);
    record.place = place_of(from, kCorrelation, kDevice, kContext, kStream);
    const U32 shape[6] = {kGridX, kGridY, kGridZ, kBlockX, kBlockY, kBlockZ};
    for (std::uint32_t i = 0; i < 3; ++i) {
        record.grid[i] = shape[i].of(from);
        record.block[i] = shape[i + 3].of(from);
    }
    record.static_shared_bytes = kStaticShared.of(from);
    record.dynamic_shared_bytes = kDynamicShared.of(from);
    record.registers = kRegisters.of(from);
    record.graph = kGraph.of(from);
    record.graph_node = kGraphNode.of(from);
    record.queued = kQueued.of(from);
    reading.put(record, record.begin);
}

void put_copy(Reading& reading, const void* from, bool peer_copy) {
    using namespace copy;
    schema::GpuCopyRecord record{};
    record.begin = kStart.of(from);
    record.end = kEnd.of(from);
    if (!reading.timed(record.begin, record.end)) return;
    record.header = header_of(RecordKind::kGpuCopy, {}, kCopyKind.of(from));
    record.place =
        place_of(from, peer_copy ? peer::kCorrelation : kCorrelation, kDevice, kContext, kStream);
    record.bytes = kBytes.of(from);
    record.source_memory = kSource.of(from);
    record.destination_memory = kDestination.of(from);
    record.flags = kFlags.of(from) & schema::kGpuAsynchronous;
    record.graph = (peer_copy ? peer::kGraph : kGraph).of(from);
    record.graph_node = (peer_copy ? peer::kGraphNode : kGraphNode).of(from);
    record.source_device = peer_copy ? peer::kSourceDevice.of(from) : record.place.device;
    record.destination_device = peer_copy ? peer::kDestinationDevice.of(from) : record.place.device;
    record.source_context = peer_copy ? peer::kSourceContext.of(from) : record.place.context;
    record.destination_context =
        peer_copy ? peer::kDestinationContext.of(from) : record.place.context;
    reading.put(record, record.begin);
}

void put_memset(Reading& reading, const void* from) {
    using namespace memset;
    schema::GpuMemsetRecord record{};
    record.begin = kStart.of(from);
    record.end = kEnd.of(from);
    if (!reading.timed(record.begin, record.end)) return;
    record.header = header_of(RecordKind::kGpuMemset, {}, kMemory.of(from));
    record.place = place_of(from, kCorrelation, kDevice, kContext, kStream);
    record.bytes = kBytes.of(from);
    record.value = kValue.of(from);
    record.graph = kGraph.of(from);
    record.graph_node = kGraphNode.of(from);
    reading.put(record, record.begin);
}

void put_call(Reading& reading, const void* from, bool driver) {
    using namespace api;
    schema::GpuApiRecord record{};
    record.thread = kThread.of(from);
    if (record.thread == reading.delivery->own_thread && record.thread != 0) return;
    record.begin = kStart.of(from);
    record.end = kEnd.of(from);
    if (!reading.timed(record.begin, record.end)) return;
    record.callback = kCallback.of(from);
    const NameId name = function_name(reading.lane, *reading.delivery,
                                      driver ? kDomainDriver : kDomainRuntime, record.callback);
    const auto detail = driver ? schema::GpuApi::kDriver : schema::GpuApi::kRuntime;
    record.header = header_of(RecordKind::kGpuApi, name, static_cast<std::uint32_t>(detail));
    record.correlation = kCorrelation.of(from);
    record.result = kResult.of(from);
    reading.put(record, record.begin);
}

void put_sync(Reading& reading, const void* from) {
    using namespace sync;
    schema::GpuSyncRecord record{};
    record.begin = kStart.of(from);
    record.end = kEnd.of(from);
    if (!reading.timed(record.begin, record.end)) return;
    record.header = header_of(RecordKind::kGpuSync, {}, kType.of(from));
    record.correlation = kCorrelation.of(from);
    const std::uint32_t event = kEvent.of(from);
    record.event = event == ~0u ? 0 : event;
    record.context = kContext.of(from);
    record.stream = kStream.of(from);
    if (reading.delivery->cupti->version >= kSyncHasResult) record.result = kResult.of(from);
    reading.put(record, record.begin);
}

void put_overhead(Reading& reading, const void* from) {
    using namespace overhead;
    schema::GpuOverheadRecord record{};
    record.begin = kStart.of(from);
    record.end = kEnd.of(from);
    if (!reading.timed(record.begin, record.end)) return;
    record.header = header_of(RecordKind::kGpuOverhead, {}, 0);
    if (reading.delivery->cupti->version >= kOverheadHasCorrelation)
        record.correlation = kCorrelation.of(from);
    record.kind = kKind.of(from);
    record.object = kObjectKind.of(from);
    record.process = kProcess.of(from);
    record.thread = kThread.of(from);
    record.stream = kStream.of(from);
    reading.put(record, record.begin);
}

void put_event(Reading& reading, const void* from) {
    using namespace event;
    schema::GpuEventRecord record{};
    const bool newer = reading.delivery->cupti->version >= kEventHasTimestamp;
    record.ticks = newer ? kTimestamp.of(from) : 0;
    const std::uint8_t detail = record.ticks != 0 ? schema::kGpuEventOnDevice : 0;
    if (record.ticks == 0) record.ticks = reading.near_ticks;
    record.header = header_of(RecordKind::kGpuEvent, {}, detail);
    record.event = kEvent.of(from);
    record.place = {kCorrelation.of(from), newer ? kDevice.of(from) : 0, kContext.of(from),
                    kStream.of(from)};
    reading.put(record, record.ticks);
}

void put_link(Reading& reading, const void* from) {
    using namespace external;
    schema::GpuLinkRecord record{};
    record.header = header_of(RecordKind::kGpuLink, {}, kKind.of(from));
    record.ticks = reading.near_ticks;
    record.id = kId.of(from);
    record.correlation = kCorrelation.of(from);
    reading.put(record, record.ticks);
}

void put_one(Reading& reading, const void* from) {
    switch (kKindOf.of(from)) {
        case kConcurrentKernel:
            return put_kernel(reading, from);
        case kMemcpy:
            return put_copy(reading, from, false);
        case kMemcpyPeer:
            return put_copy(reading, from, true);
        case kMemset:
            return put_memset(reading, from);
        case kRuntime:
            return put_call(reading, from, false);
        case kDriver:
            return put_call(reading, from, true);
        case kSynchronization:
            return put_sync(reading, from);
        case kOverhead:
            return put_overhead(reading, from);
        case kCudaEvent:
            return put_event(reading, from);
        case kExternalCorrelation:
            return put_link(reading, from);
        default:
            return;  // another tool's, where CUPTI is shared without telling them apart
    }
}

/// The next record; only the library that laid them down knows how long they are.
bool step(const Delivery& delivery, void*& record) {
    const Result result =
        delivery.sharing != nullptr
            ? delivery.cupti->next_record2(delivery.sharing, delivery.buffer, delivery.valid_bytes,
                                           &record)
            : delivery.cupti->next_record(delivery.buffer, delivery.valid_bytes, &record);
    return result == kSuccess && record != nullptr;
}

/// A time for what has none and comes before all that has.
std::uint64_t first_ticks(const Delivery& delivery) {
    void* record = nullptr;
    while (step(delivery, record)) {
        const std::uint32_t kind = kKindOf.of(record);
        const std::uint64_t ticks = kind == kRuntime || kind == kDriver ? api::kStart.of(record)
                                    : kind == kConcurrentKernel         ? kernel::kStart.of(record)
                                                                        : 0;
        if (ticks != 0) return ticks;
    }
    return delivery.shim->now();
}

}  // namespace

void deliver(LaneHandle* lane, const Delivery& delivery) {
    void* record = nullptr;
    std::uint64_t lost = 0;
    if (lane == nullptr) {
        while (step(delivery, record)) ++lost;
    } else {
        Reading reading{lane, &delivery, first_ticks(delivery)};
        put_devices(lane, *delivery.shim, reading.near_ticks);
        while (step(delivery, record)) put_one(reading, record);
        lost = reading.lost;
    }
    if (lost != 0) delivery.shim->count_lost(lost);
}

}  // namespace ringside::inject::cupti
