// The GPU's records, as CUPTI tells them after the fact. Each stands in the lane of the thread that heard of it, which says nothing: a kernel's
// place is (process, device, context, stream), a call's is its thread, and the two find each other by their correlation within the process.
//
//   word     0                   1      2      3                     4                 5                 6                  7
//   Kernel   header, name        begin  end    correlation, device   context, stream   grid x, y         grid z, block x    block y, z
//                                              8: shared memory static, dynamic  9: registers, graph    10: graph node     11: queued
//   Copy     header (kind)       begin  end    correlation, device   context, stream   bytes             flags, graph       graph node
//                                              8: source, destination device     9: source, destination context
//   Memset   header (memory)     begin  end    correlation, device   context, stream   bytes             value, graph       graph node
//   Api      header, name (api)  begin  end    correlation, result   thread, callback
//   Sync     header (what)       begin  end    correlation, event    context, stream   result
//   Overhead header              begin  end    correlation, kind     object, process   thread
//   Event    header (clock)      ticks  event  correlation, device   context, stream
//   Link     header (who)        ticks  id     correlation
//   Device   header, name        ticks  bytes  device, processors    capability        threads           registers          shared memory
//                                              8: shared memory at most, warp    9: blocks
//
// All times are ticks; 0: unknown. Two u32 in one word stand lowest first. Words that are not named here are 0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "schema/record.hpp"

namespace ringside::schema {

/// Details of a GpuCopy: from where to where; CUPTI's numbers.
enum class GpuCopyKind : std::uint8_t {
    kUnknown = 0,
    kHostToDevice = 1,
    kDeviceToHost = 2,
    kHostToArray = 3,
    kArrayToHost = 4,
    kArrayToArray = 5,
    kArrayToDevice = 6,
    kDeviceToArray = 7,
    kDeviceToDevice = 8,
    kHostToHost = 9,
    kPeerToPeer = 10,
};

/// A side of a copy, and the detail of a GpuMemset; CUPTI's numbers.
enum class GpuMemory : std::uint8_t {
    kUnknown = 0,
    kPageable = 1,
    kPinned = 2,
    kDevice = 3,
    kArray = 4,
    kManaged = 5,
    kDeviceStatic = 6,
    kManagedStatic = 7,
};

/// Details of a GpuApi.
enum class GpuApi : std::uint8_t { kRuntime = 0, kDriver = 1 };

/// Details of a GpuSync; CUPTI's numbers.
enum class GpuSyncKind : std::uint8_t {
    kUnknown = 0,
    kEvent = 1,        ///< a thread waited for an event
    kStreamEvent = 2,  ///< a stream waits for an event
    kStream = 3,       ///< a thread waited for a stream
    kContext = 4,      ///< ... for all of a context
};

/// Details of a GpuEvent: whether its ticks are the device's, or those of a call nearby.
inline constexpr std::uint8_t kGpuEventOnDevice = 1;

/// Bits of a copy's flags.
inline constexpr std::uint8_t kGpuAsynchronous = 1;

/// Where work ran: what most of these records have in common.
struct GpuPlace {
    std::uint32_t correlation;  ///< of the call that asked for it
    std::uint32_t device;
    std::uint32_t context;
    std::uint32_t stream;
};

struct GpuKernelRecord {
    std::uint64_t header;  ///< name: as the compiler mangled it
    std::uint64_t begin;
    std::uint64_t end;
    GpuPlace place;
    std::uint32_t grid[3];
    std::uint32_t block[3];
    std::uint32_t static_shared_bytes;  ///< of a block
    std::uint32_t dynamic_shared_bytes;
    std::uint32_t registers;   ///< of a thread
    std::uint32_t graph;       ///< CUDA graph that it is a node of; 0: none
    std::uint64_t graph_node;  ///< 0: none
    std::uint64_t queued;      ///< when it was put into its queue; 0: unknown
};
static_assert(sizeof(GpuKernelRecord) == 3 * kCellBytes && offsetof(GpuKernelRecord, place) == 24 &&
              offsetof(GpuKernelRecord, grid) == 40 && offsetof(GpuKernelRecord, registers) == 72 &&
              offsetof(GpuKernelRecord, graph_node) == 80);

struct GpuCopyRecord {
    std::uint64_t header;  ///< detail: GpuCopyKind
    std::uint64_t begin;
    std::uint64_t end;
    GpuPlace place;
    std::uint64_t bytes;
    std::uint8_t source_memory;       ///< GpuMemory
    std::uint8_t destination_memory;  ///< GpuMemory
    std::uint8_t flags;
    std::uint8_t reserved0;
    std::uint32_t graph;
    std::uint64_t graph_node;
    std::uint32_t source_device;  ///< of a peer copy; else as the place's
    std::uint32_t destination_device;
    std::uint32_t source_context;
    std::uint32_t destination_context;
    std::uint64_t reserved1[2];
};
static_assert(sizeof(GpuCopyRecord) == 3 * kCellBytes && offsetof(GpuCopyRecord, graph) == 52 &&
              offsetof(GpuCopyRecord, source_device) == 64);

struct GpuMemsetRecord {
    std::uint64_t header;  ///< detail: GpuMemory
    std::uint64_t begin;
    std::uint64_t end;
    GpuPlace place;
    std::uint64_t bytes;
    std::uint32_t value;
    std::uint32_t graph;
    std::uint64_t graph_node;
};
static_assert(sizeof(GpuMemsetRecord) == 2 * kCellBytes);

struct GpuApiRecord {
    std::uint64_t header;  ///< name: the function; detail: GpuApi
    std::uint64_t begin;
    std::uint64_t end;
    std::uint32_t correlation;
    std::uint32_t result;    ///< what the function returned
    std::uint32_t thread;    ///< tid of the caller
    std::uint32_t callback;  ///< CUPTI's number of the function
    std::uint64_t reserved[3];
};
static_assert(sizeof(GpuApiRecord) == 2 * kCellBytes);

struct GpuSyncRecord {
    std::uint64_t header;  ///< detail: GpuSyncKind
    std::uint64_t begin;
    std::uint64_t end;
    std::uint32_t correlation;
    std::uint32_t event;  ///< the CUDA event's id; 0: none
    std::uint32_t context;
    std::uint32_t stream;  ///< ~0 (CUPTI's "invalid"): all of the context
    std::uint32_t result;  ///< from CUDA 12.8 on; else 0
    std::uint32_t reserved0;
    std::uint64_t reserved1[2];
};
static_assert(sizeof(GpuSyncRecord) == 2 * kCellBytes);

/// A GpuOverhead's kind; CUPTI's numbers. Others are told by their number.
enum class GpuOverheadKind : std::uint32_t {
    kUnknown = 0,
    kDriverCompiler = 1,
    kBufferFlush = 1 << 16,
    kInstrumentation = 2 << 16,
    kResource = 3 << 16,
    kRuntimeTriggeredModuleLoading = 4 << 16,
    kLazyFunctionLoading = 5 << 16,
    kCommandBufferFull = 6 << 16,
    kActivityBufferRequest = 7 << 16,
    kUvmActivityInit = 8 << 16,
};

struct GpuOverheadRecord {
    std::uint64_t header;
    std::uint64_t begin;
    std::uint64_t end;
    std::uint32_t correlation;  ///< from CUDA 12.3 on; else 0
    std::uint32_t kind;         ///< GpuOverheadKind
    std::uint32_t
        object;  ///< CUPTI's kind of what it was for: 1 process, 2 thread, 3 device, 4 context, 5 stream
    std::uint32_t process;  ///< or device
    std::uint32_t thread;   ///< tid; or context
    std::uint32_t stream;
    std::uint64_t reserved[2];
};
static_assert(sizeof(GpuOverheadRecord) == 2 * kCellBytes);

struct GpuEventRecord {
    std::uint64_t header;  ///< detail: kGpuEventOnDevice
    std::uint64_t ticks;
    std::uint64_t event;  ///< the CUDA event's id
    GpuPlace place;
    std::uint64_t reserved[3];
};
static_assert(sizeof(GpuEventRecord) == 2 * kCellBytes);

struct GpuLinkRecord {
    std::uint64_t header;  ///< detail: CUPTI's kind of external correlation: whose number it is
    std::uint64_t ticks;   ///< of a record nearby
    std::uint64_t id;      ///< the number
    std::uint32_t correlation;
    std::uint32_t reserved;
};
static_assert(sizeof(GpuLinkRecord) == kCellBytes);

/// Comes again and again, so that each piece of a capture has it: the last one counts.
struct GpuDeviceRecord {
    std::uint64_t header;  ///< name: the device's
    std::uint64_t ticks;   ///< of a record nearby
    std::uint64_t memory_bytes;
    std::uint32_t device;
    std::uint32_t processors;  ///< streaming multiprocessors
    std::uint32_t capability_major;
    std::uint32_t capability_minor;
    std::uint32_t block_threads;  ///< at most
    std::uint32_t processor_threads;
    std::uint32_t block_registers;
    std::uint32_t processor_registers;
    std::uint32_t block_shared_bytes;  ///< without opting in to more
    std::uint32_t processor_shared_bytes;
    std::uint32_t block_shared_most_bytes;
    std::uint32_t warp_threads;
    std::uint32_t processor_blocks;
    std::uint32_t reserved0;
    std::uint64_t reserved1[2];
};
static_assert(sizeof(GpuDeviceRecord) == 3 * kCellBytes &&
              offsetof(GpuDeviceRecord, block_shared_bytes) == 56 &&
              offsetof(GpuDeviceRecord, processor_blocks) == 72);

}  // namespace ringside::schema
