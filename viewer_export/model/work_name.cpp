#include "viewer_export/model/work_name.hpp"

#include <iterator>

#include "viewer_export/model/kernel_names.hpp"

namespace ringside::viewer_export::model {

using schema::RecordKind;

namespace {

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

/// Of what is no kernel.
std::string name_of(const GpuWork& work) {
    switch (work.kind) {
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
            return "cudaEvent";
        default:
            return overhead_name(work.value);
    }
}

}  // namespace

const WorkNames::Kernel& WorkNames::kernel(Index name) {
    const auto [at, added] = kernels_.try_emplace(name);
    if (added) {
        at->second.name = demangled(names_[name]);
        at->second.communicates = is_communication(at->second.name);
    }
    return at->second;
}

std::string_view WorkNames::of(const GpuWork& work) {
    if (work.kind == RecordKind::kGpuKernel) return kernel(work.name).name;
    return other_ = name_of(work);
}

}  // namespace ringside::viewer_export::model
