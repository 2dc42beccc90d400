#include "viewer_export/out/trace_plan.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>

namespace ringside::viewer_export::trace {

using model::Index;
using schema::RecordKind;

namespace {

std::vector<bool> all_or(const model::Job& job, const std::vector<bool>& processes) {
    return processes.empty() ? std::vector<bool>(job.processes.size(), true) : processes;
}

const char* memory_name(schema::GpuMemory memory) {
    using schema::GpuMemory;
    switch (memory) {
        case GpuMemory::kPageable:
            return "Pageable";
        case GpuMemory::kPinned:
            return "Pinned";
        case GpuMemory::kDevice:
            return "Device";
        case GpuMemory::kArray:
            return "Array";
        case GpuMemory::kManaged:
            return "Managed";
        case GpuMemory::kDeviceStatic:
            return "Device Static";
        case GpuMemory::kManagedStatic:
            return "Managed Static";
        default:
            return "Unknown";
    }
}

const char* copy_name(std::uint8_t detail) {
    static constexpr const char* kNames[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                             "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
    return detail < std::size(kNames) ? kNames[detail] : kNames[0];
}

const char* wait_name(std::uint8_t detail) {
    static constexpr const char* kNames[] = {"Unknown Sync", "Event Sync", "Stream Wait Event",
                                             "Stream Sync", "Context Sync"};
    return detail < std::size(kNames) ? kNames[detail] : kNames[0];
}

const char* overhead_name(std::uint32_t kind) {
    using schema::GpuOverheadKind;
    switch (static_cast<GpuOverheadKind>(kind)) {
        case GpuOverheadKind::kDriverCompiler:
            return "Driver Compiler";
        case GpuOverheadKind::kBufferFlush:
            return "Buffer Flush";
        case GpuOverheadKind::kInstrumentation:
            return "Instrumentation";
        case GpuOverheadKind::kResource:
            return "Resource";
        case GpuOverheadKind::kRuntimeTriggeredModuleLoading:
            return "Runtime Triggered Module Loading";
        case GpuOverheadKind::kLazyFunctionLoading:
            return "Lazy Function Loading";
        case GpuOverheadKind::kCommandBufferFull:
            return "Command Buffer Full";
        case GpuOverheadKind::kActivityBufferRequest:
            return "Activity Buffer Request";
        case GpuOverheadKind::kUvmActivityInit:
            return "UVM Activity Init";
        default:
            return "Unknown Overhead";
    }
}

std::string demangled(const std::string& name) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
    return status == 0 && name.starts_with("_Z") ? text.get() : name;
}

}  // namespace

std::int64_t first_ns(const model::Job& job, const std::vector<bool>& processes) {
    const std::vector<bool> drawn = all_or(job, processes);
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    const auto take = [&](Index process, std::int64_t ns) {
        if (drawn[process]) first = std::min(first, ns);
    };
    for (const model::Lane& lane : job.lanes) {
        if (!lane.ranges.empty()) take(lane.process, lane.ranges.front().begin_ns);
    }
    for (const model::AsyncRange& range : job.asyncs)
        take(job.lanes[range.lane].process, range.begin_ns);
    for (const model::Value& value : job.values) take(job.lanes[value.lane].process, value.ns);
    for (const model::Half& half : job.halves) {
        if (half.shown()) take(half.process, half.begin_ns);
    }
    for (const model::GpuCall& call : job.gpu_calls) take(call.process, call.begin_ns);
    for (const model::GpuWork& work : job.gpu_work) take(work.process, work.begin_ns);
    return first == std::numeric_limits<std::int64_t>::max() ? 0 : first;
}

Category category_of(const model::Range& range) {
    const bool user = range.source != schema::SourceId::kTorch ||
                      range.detail == static_cast<std::uint8_t>(schema::TorchScope::kUser);
    return user ? Category::kUserAnnotation : Category::kCpuOp;
}

Category category_of(const model::GpuWork& work) {
    switch (work.kind) {
        case RecordKind::kGpuKernel:
            return Category::kKernel;
        case RecordKind::kGpuCopy:
            return Category::kCopy;
        case RecordKind::kGpuMemset:
            return Category::kMemset;
        case RecordKind::kGpuSync:
            return Category::kWait;
        case RecordKind::kGpuEvent:
            return Category::kCudaEvent;
        default:
            return Category::kOverhead;
    }
}

Plan::Plan(const model::Job& of, const std::vector<bool>& processes)
    : job(of),
      drawn(all_or(of, processes)),
      base_ns(first_ns(of, drawn)),
      tracks(of, drawn),
      steps(steps_of(of, drawn, tracks)),
      arrows(of, tracks, drawn),
      names(of) {
    std::uint64_t ranges = 0;
    for (const model::Lane& lane : job.lanes) {
        lane_first.push_back(ranges);
        ranges += lane.ranges.size();
    }
    elements = ranges + job.asyncs.size() + job.values.size() + job.halves.size() +
               job.gpu_calls.size() + 3 * job.gpu_work.size() + 2 * arrows.all().size();
}

std::string_view end_text(const model::Job& job, model::End end, Index index) {
    if (end == model::End::kEnded) return {};
    const model::Process& process = job.processes[index];
    if (end == model::End::kUnfinished)
        return "no: its process died; drawn to the last evidence of it";
    if (!job.nodes[process.node].complete)
        return "no: the dump was cut short; drawn to its last record";
    return process.fate == model::Fate::kRunning ? "no: open when the capture stopped"
                                                 : "no: open when its process ended";
}

std::string_view status_text(schema::RpcStatus status) {
    switch (status) {
        case schema::RpcStatus::kOk:
            return "ok";
        case schema::RpcStatus::kError:
            return "error";
        case schema::RpcStatus::kTimeout:
            return "timeout";
        case schema::RpcStatus::kPeerGone:
            return "peer gone";
    }
    return "unknown";
}

std::string_view state_text(const model::Call& call) {
    using model::CallState;
    switch (call.state) {
        case CallState::kJoined:
            return call.unfinished ? "joined, unfinished" : "joined";
        case CallState::kOrphan:
            return "orphan";
        case CallState::kCut:
            return "cut";
        case CallState::kUnjoined:
            return "not joined (no job index)";
    }
    return "unknown";
}

std::string work_name(const model::Job& job, const model::GpuWork& work) {
    switch (work.kind) {
        case RecordKind::kGpuKernel:
            return demangled(job.names[work.name]);
        case RecordKind::kGpuCopy:
            return std::string("Memcpy ") + copy_name(work.detail) + " (" +
                   memory_name(work.source_memory) + " -> " + memory_name(work.destination_memory) +
                   ")";
        case RecordKind::kGpuMemset:
            return std::string("Memset (") +
                   memory_name(static_cast<schema::GpuMemory>(work.detail)) + ")";
        case RecordKind::kGpuSync:
            return wait_name(work.detail);
        case RecordKind::kGpuEvent:
            return "cudaEventRecord";
        default:
            return overhead_name(work.value);
    }
}

}  // namespace ringside::viewer_export::trace
