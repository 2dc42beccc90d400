// What the GPU did, and the calls that asked for it, as CUPTI told: plain values, by process and begin. A view goes from work to its call, and
// from the call to the range and the request on whose behalf it was made.
//
//   GpuWork --call--> GpuCall --range--> Job::lanes[thread_lane].ranges[range]
//                            \-request-> Job::halves
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "schema/gpu_record.hpp"
#include "viewer_export/model/event.hpp"

namespace ringside::viewer_export::model {

/// A call of the CUDA runtime or the driver on a thread of the program: a GpuApi record.
struct GpuCall {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    std::uint64_t position;  ///< of its record in `lane`
    Index process;
    Index lane;  ///< where the record lies: of the thread that heard of it
    Index name;  ///< the function
    std::uint32_t correlation;
    std::uint32_t thread;    ///< tid of the caller
    std::uint32_t callback;  ///< CUPTI's number of the function
    std::uint32_t result;
    Index thread_lane = kNone;  ///< of the caller; kNone: that thread recorded nothing
    Index range = kNone;        ///< of that lane's: the innermost around the call's begin
    Index request = kNone;      ///< as in Range
    schema::GpuApi api;
    Index first_work = kNone;  ///< Job::gpu_work: what it asked of a device; kNone: nothing

    std::int64_t duration_ns() const { return end_ns - begin_ns; }
};

/// A kernel, copy, memset, synchronisation, overhead or event. Fields that a kind does not have are 0.
struct GpuWork {
    std::int64_t begin_ns;
    std::int64_t end_ns;         ///< an event's: its begin
    std::int64_t queued_ns = 0;  ///< kernel; 0: unknown
    std::uint64_t position;      ///< of its record in `lane`
    std::uint64_t bytes = 0;     ///< copy, memset
    std::uint64_t graph_node = 0;
    Index process;
    Index lane;          ///< where the record lies: of the thread that heard of it
    Index name = kNone;  ///< a kernel's, as the compiler mangled it
    Index call = kNone;  ///< Job::gpu_calls: what asked for it; kNone: in no dump
    Index waited_for =
        kNone;  ///< synchronisation: Job::gpu_work, where its CUDA event was recorded; kNone: nobody knows
    Index next_work = kNone;  ///< of the same call, where it is a device's; kNone: the last
    std::uint32_t correlation = 0;
    std::uint32_t device = 0;
    std::uint32_t context = 0;
    std::uint32_t stream = 0;
    std::uint32_t graph = 0;
    std::array<std::uint32_t, 3> grid{};
    std::array<std::uint32_t, 3> block{};
    std::uint32_t static_shared_bytes = 0;
    std::uint32_t dynamic_shared_bytes = 0;
    std::uint32_t registers = 0;
    std::uint32_t value =
        0;  ///< memset: the value; synchronisation, event: the CUDA event; overhead: schema::GpuOverheadKind
    std::uint32_t source_device = 0;  ///< copy
    std::uint32_t destination_device = 0;
    std::uint32_t thread = 0;  ///< overhead: tid, where it is a thread's
    schema::GpuMemory source_memory{};
    schema::GpuMemory destination_memory{};
    bool asynchronous = false;  ///< copy
    schema::RecordKind kind;
    std::uint8_t detail;  ///< GpuCopyKind, GpuMemory, GpuSyncKind, kGpuEventOnDevice

    std::int64_t duration_ns() const { return end_ns - begin_ns; }
    /// Work in a stream of a device; a synchronisation and an overhead are threads'.
    bool on_device() const {
        return kind == schema::RecordKind::kGpuKernel || kind == schema::RecordKind::kGpuCopy ||
               kind == schema::RecordKind::kGpuMemset;
    }
};

/// What Kineto calls cuda_sync and cuda_event: a wait, and what may be waited for.
inline bool is_wait(const GpuWork& work) {
    return work.kind == schema::RecordKind::kGpuSync || work.kind == schema::RecordKind::kGpuEvent;
}

/// A synchronisation with a CUDA event: a thread's, or a stream's.
inline bool waits_for_event(const GpuWork& work) {
    return work.kind == schema::RecordKind::kGpuSync &&
           (work.detail == static_cast<std::uint8_t>(schema::GpuSyncKind::kEvent) ||
            work.detail == static_cast<std::uint8_t>(schema::GpuSyncKind::kStreamEvent));
}

/// Of one process. Where a damaged dump claims more, nothing that takes time or memory for each device is done for those.
inline constexpr std::uint32_t kMostDevices = 256;

/// What a device is, as its process numbers it.
struct GpuDevice {
    Index process;
    Index name;
    std::uint32_t device;
    std::uint64_t memory_bytes;
    std::uint32_t processors;  ///< streaming multiprocessors
    std::uint32_t capability_major;
    std::uint32_t capability_minor;
    std::uint32_t block_threads;
    std::uint32_t processor_threads;
    std::uint32_t block_registers;
    std::uint32_t processor_registers;
    std::uint32_t block_shared_bytes;
    std::uint32_t processor_shared_bytes;
    std::uint32_t block_shared_most_bytes;
    std::uint32_t warp_threads;
    std::uint32_t processor_blocks;
};

}  // namespace ringside::viewer_export::model
