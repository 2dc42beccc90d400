// The GPU's records: into events, trimmed with the call that asked for them, and tied to the call, its range and its request.
#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "schema/gpu_record.hpp"
#include "viewer_export/load/builder.hpp"

namespace ringside::viewer_export::load {

using model::GpuCall;
using model::GpuWork;
using schema::DecodedRecord;
using schema::RecordKind;

namespace {

std::uint64_t ticks_of(std::int64_t field) {
    return static_cast<std::uint64_t>(field);
}

template <class Record>
Record read(const DecodedRecord& decoded) {
    Record record;
    std::memcpy(&record, decoded.words, sizeof record);
    return record;
}

void set_place(GpuWork& work, const schema::GpuPlace& place) {
    work.correlation = place.correlation;
    work.device = place.device;
    work.context = place.context;
    work.stream = place.stream;
}

void read_kernel(GpuWork& work, const DecodedRecord& decoded) {
    const auto record = read<schema::GpuKernelRecord>(decoded);
    set_place(work, record.place);
    std::copy_n(record.grid, 3, work.grid.begin());
    std::copy_n(record.block, 3, work.block.begin());
    work.static_shared_bytes = record.static_shared_bytes;
    work.dynamic_shared_bytes = record.dynamic_shared_bytes;
    work.registers = record.registers;
    work.graph = record.graph;
    work.graph_node = record.graph_node;
    work.queued_ns = static_cast<std::int64_t>(record.queued);
}

void read_copy(GpuWork& work, const DecodedRecord& decoded) {
    const auto record = read<schema::GpuCopyRecord>(decoded);
    set_place(work, record.place);
    work.bytes = record.bytes;
    work.source_memory = static_cast<schema::GpuMemory>(record.source_memory);
    work.destination_memory = static_cast<schema::GpuMemory>(record.destination_memory);
    work.asynchronous = (record.flags & schema::kGpuAsynchronous) != 0;
    work.graph = record.graph;
    work.graph_node = record.graph_node;
    work.source_device = record.source_device;
    work.destination_device = record.destination_device;
}

void read_memset(GpuWork& work, const DecodedRecord& decoded) {
    const auto record = read<schema::GpuMemsetRecord>(decoded);
    set_place(work, record.place);
    work.bytes = record.bytes;
    work.value = record.value;
    work.graph = record.graph;
    work.graph_node = record.graph_node;
}

void read_sync(GpuWork& work, const DecodedRecord& decoded) {
    const auto record = read<schema::GpuSyncRecord>(decoded);
    work.correlation = record.correlation;
    work.value = record.event;
    work.context = record.context;
    work.stream = record.stream;
}

void read_overhead(GpuWork& work, const DecodedRecord& decoded) {
    constexpr std::uint32_t kOfThread = 2;
    const auto record = read<schema::GpuOverheadRecord>(decoded);
    work.correlation = record.correlation;
    work.value = record.kind;
    if (record.object <= kOfThread) {
        work.thread = record.thread;
    } else {
        work.device = record.process;
        work.context = record.thread;
        work.stream = record.stream;
    }
}

void read_event(GpuWork& work, const DecodedRecord& decoded) {
    const auto record = read<schema::GpuEventRecord>(decoded);
    set_place(work, record.place);
    work.value = static_cast<std::uint32_t>(record.event);
    work.end_ns = work.begin_ns;
}

/// CUPTI has lost the times of what it tells with 0: that would be drawn from the machine's start on.
bool has_no_times(const DecodedRecord& record) {
    const RecordKind kind = record.header().kind;
    if (kind == RecordKind::kGpuDevice) return false;
    return record.words[1] == 0 || (kind != RecordKind::kGpuEvent && record.words[2] == 0);
}

/// By process, then begin.
template <class Event>
bool earlier(const Event& a, const Event& b) {
    if (a.process != b.process) return a.process < b.process;
    return ticks_of(a.begin_ns) < ticks_of(b.begin_ns);
}

}  // namespace

void JobBuilder::add_gpu(const DecodedRecord& record, std::uint64_t position, Index lane) {
    const schema::RecordHeader header = record.header();
    if (has_no_times(record)) {
        ++job_.totals.untimed;
        return;
    }
    const Index process = job_.lanes[lane].process;
    switch (header.kind) {
        case RecordKind::kGpuApi: {
            const auto call = read<schema::GpuApiRecord>(record);
            job_.gpu_calls.push_back(
                {static_cast<std::int64_t>(call.begin), static_cast<std::int64_t>(call.end),
                 position, process, lane, record_name(header, lane), call.correlation, call.thread,
                 call.callback, call.result, kNone, kNone, kNone,
                 static_cast<schema::GpuApi>(schema::record_detail(header.flags))});
            return;
        }
        case RecordKind::kGpuDevice:
            return add_gpu_device(record, lane);
        default:
            break;
    }
    GpuWork work{};
    work.begin_ns = static_cast<std::int64_t>(record.words[1]);
    work.end_ns = static_cast<std::int64_t>(record.words[2]);
    work.position = position;
    work.process = process;
    work.lane = lane;
    work.kind = header.kind;
    work.detail = schema::record_detail(header.flags);
    if (header.kind == RecordKind::kGpuKernel) {
        work.name = record_name(header, lane);
        read_kernel(work, record);
    } else if (header.kind == RecordKind::kGpuCopy) {
        read_copy(work, record);
    } else if (header.kind == RecordKind::kGpuMemset) {
        read_memset(work, record);
    } else if (header.kind == RecordKind::kGpuSync) {
        read_sync(work, record);
    } else if (header.kind == RecordKind::kGpuOverhead) {
        read_overhead(work, record);
    } else {
        read_event(work, record);
    }
    job_.gpu_work.push_back(work);
}

void JobBuilder::add_gpu_device(const DecodedRecord& decoded, Index lane) {
    const auto record = read<schema::GpuDeviceRecord>(decoded);
    const Index process = job_.lanes[lane].process;
    job_.gpu_devices.push_back(
        {process, record_name(decoded.header(), lane), record.device, record.memory_bytes,
         record.processors, record.capability_major, record.capability_minor, record.block_threads,
         record.processor_threads, record.block_registers, record.processor_registers,
         record.block_shared_bytes, record.processor_shared_bytes, record.block_shared_most_bytes,
         record.warp_threads, record.processor_blocks});
}

/// Each once, as it was told last.
void JobBuilder::settle_gpu_devices() {
    const auto place = [](const model::GpuDevice& device) {
        return std::pair(device.process, device.device);
    };
    auto& devices = job_.gpu_devices;
    std::stable_sort(devices.begin(), devices.end(),
                     [&](const auto& a, const auto& b) { return place(a) < place(b); });
    std::size_t kept = 0;
    for (std::size_t i = 0; i < devices.size(); ++i) {
        if (i + 1 == devices.size() || place(devices[i]) != place(devices[i + 1]))
            devices[kept++] = devices[i];
    }
    devices.resize(kept);
}

/// Before anything is left out: work goes or stays with its call. Indices of calls hold until leave_out_gpu().
void JobBuilder::find_gpu_calls() {
    std::stable_sort(job_.gpu_calls.begin(), job_.gpu_calls.end(), earlier<GpuCall>);
    std::stable_sort(job_.gpu_work.begin(), job_.gpu_work.end(), earlier<GpuWork>);
    const auto key = [](Index process, std::uint32_t number) {
        return std::uint64_t{process} << 32 | number;
    };
    // The first of each correlation: the runtime's call begins before the driver's within it.
    std::unordered_map<std::uint64_t, Index> first;
    for (Index i = 0; i < job_.gpu_calls.size(); ++i) {
        const GpuCall& call = job_.gpu_calls[i];
        if (call.correlation != 0) first.try_emplace(key(call.process, call.correlation), i);
    }
    for (GpuWork& work : job_.gpu_work) {
        const auto call = first.find(key(work.process, work.correlation));
        if (call != first.end()) work.call = call->second;
    }
    std::unordered_map<std::uint64_t, std::vector<Index>> lanes_of_thread;
    for (Index lane = 0; lane < job_.lanes.size(); ++lane) {
        const auto tid = static_cast<std::uint32_t>(job_.lanes[lane].tid);
        lanes_of_thread[key(job_.lanes[lane].process, tid)].push_back(lane);
    }
    for (GpuCall& call : job_.gpu_calls) {
        const auto lanes = lanes_of_thread.find(key(call.process, call.thread));
        if (lanes == lanes_of_thread.end()) continue;
        // A tid may come again: of its lanes the last that had begun.
        call.thread_lane = lanes->second.front();
        for (const Index lane : lanes->second) {
            const auto& ranges = job_.lanes[lane].ranges;
            if (!ranges.empty() && ticks_of(ranges.front().begin_ns) <= ticks_of(call.begin_ns))
                call.thread_lane = lane;
        }
        call.request = request_of(call.process, lanes_[call.thread_lane].contexts.at(
                                                    ticks_of(call.begin_ns), model::kNoPosition));
    }
}

/// Gives each call what it launched, and finds the range around it, in what has not been left out: one walk over a lane's ranges and the calls of
/// its thread, both by begin.
void JobBuilder::tie_gpu_calls() {
    for (auto i = static_cast<Index>(job_.gpu_work.size()); i-- > 0;) {
        GpuWork& work = job_.gpu_work[i];
        if (!work.on_device() || work.call == kNone) continue;
        work.next_work = std::exchange(job_.gpu_calls[work.call].first_work, i);
    }
    struct Walk {
        Index next = 0;
        std::vector<Index> around;
    };
    std::unordered_map<Index, Walk> walks;
    for (GpuCall& call : job_.gpu_calls) {
        if (call.thread_lane == kNone) continue;
        const auto& ranges = job_.lanes[call.thread_lane].ranges;
        auto& [next, around] = walks[call.thread_lane];
        const std::uint64_t at = ticks_of(call.begin_ns);
        for (; next < ranges.size() && ticks_of(ranges[next].begin_ns) <= at; ++next)
            around.push_back(next);
        while (!around.empty() && ticks_of(ranges[around.back()].end_ns) < at) around.pop_back();
        call.range = around.empty() ? kNone : around.back();
    }
}

/// A wait for a CUDA event is one for what was recorded last before it. Calls are numbered in the order in which they are made.
void JobBuilder::tie_gpu_waits() {
    std::vector<Index> events;
    for (Index i = 0; i < job_.gpu_work.size(); ++i) {
        if (job_.gpu_work[i].kind == RecordKind::kGpuEvent) events.push_back(i);
    }
    const auto event_of = [](const GpuWork& work) {
        return std::tuple(work.process, work.context, work.value);
    };
    const auto key = [&](Index i) {
        return std::pair(event_of(job_.gpu_work[i]), job_.gpu_work[i].correlation);
    };
    std::sort(events.begin(), events.end(), [&](Index a, Index b) { return key(a) < key(b); });
    for (GpuWork& work : job_.gpu_work) {
        if (!model::waits_for_event(work)) continue;
        const auto after = std::partition_point(events.begin(), events.end(), [&](Index i) {
            return key(i) < std::pair(event_of(work), work.correlation);
        });
        if (after != events.begin() && event_of(job_.gpu_work[*(after - 1)]) == event_of(work))
            work.waited_for = *(after - 1);
    }
}

}  // namespace ringside::viewer_export::load
