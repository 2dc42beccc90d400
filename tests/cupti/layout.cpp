// What the plugin knows of CUPTI's and the driver's layouts (inject/sources/cupti/abi.hpp), against NVIDIA's headers of one release. Compiled, not run.
#include <cuda.h>
#include <cupti.h>

#include <type_traits>

#include "inject/sources/cupti/abi.hpp"
#include "schema/gpu_record.hpp"

namespace ours = ringside::inject::cupti;
namespace schema = ringside::schema;

#define SAME(record, member, field)                             \
    static_assert(offsetof(record, member) == (field).offset && \
                  sizeof(record::member) == sizeof(decltype((field).of(std::declval<void*>()))))
#define EQUAL(theirs, value) static_assert(static_cast<long>(theirs) == static_cast<long>(value))

// --- records: every version that the headers declare, from the oldest that a release of ours emits ---

#define KERNEL(record)                                               \
    SAME(record, kind, ours::kKindOf);                               \
    SAME(record, registersPerThread, ours::kernel::kRegisters);      \
    SAME(record, start, ours::kernel::kStart);                       \
    SAME(record, end, ours::kernel::kEnd);                           \
    SAME(record, queued, ours::kernel::kQueued);                     \
    SAME(record, graphNodeId, ours::kernel::kGraphNode);             \
    SAME(record, graphId, ours::kernel::kGraph);                     \
    SAME(record, deviceId, ours::kernel::kDevice);                   \
    SAME(record, contextId, ours::kernel::kContext);                 \
    SAME(record, streamId, ours::kernel::kStream);                   \
    SAME(record, gridX, ours::kernel::kGridX);                       \
    SAME(record, gridY, ours::kernel::kGridY);                       \
    SAME(record, gridZ, ours::kernel::kGridZ);                       \
    SAME(record, blockX, ours::kernel::kBlockX);                     \
    SAME(record, blockY, ours::kernel::kBlockY);                     \
    SAME(record, blockZ, ours::kernel::kBlockZ);                     \
    SAME(record, staticSharedMemory, ours::kernel::kStaticShared);   \
    SAME(record, dynamicSharedMemory, ours::kernel::kDynamicShared); \
    SAME(record, correlationId, ours::kernel::kCorrelation);         \
    SAME(record, name, ours::kernel::kName)
#define COPY(record)                                 \
    SAME(record, copyKind, ours::copy::kCopyKind);   \
    SAME(record, srcKind, ours::copy::kSource);      \
    SAME(record, dstKind, ours::copy::kDestination); \
    SAME(record, flags, ours::copy::kFlags);         \
    SAME(record, bytes, ours::copy::kBytes);         \
    SAME(record, start, ours::copy::kStart);         \
    SAME(record, end, ours::copy::kEnd);             \
    SAME(record, deviceId, ours::copy::kDevice);     \
    SAME(record, contextId, ours::copy::kContext);   \
    SAME(record, streamId, ours::copy::kStream)
#define COPY_OWN(record)                                   \
    COPY(record);                                          \
    SAME(record, correlationId, ours::copy::kCorrelation); \
    SAME(record, graphNodeId, ours::copy::kGraphNode);     \
    SAME(record, graphId, ours::copy::kGraph)
#define MEMSET(record)                                       \
    SAME(record, value, ours::memset::kValue);               \
    SAME(record, bytes, ours::memset::kBytes);               \
    SAME(record, start, ours::memset::kStart);               \
    SAME(record, end, ours::memset::kEnd);                   \
    SAME(record, deviceId, ours::memset::kDevice);           \
    SAME(record, contextId, ours::memset::kContext);         \
    SAME(record, streamId, ours::memset::kStream);           \
    SAME(record, correlationId, ours::memset::kCorrelation); \
    SAME(record, memoryKind, ours::memset::kMemory);         \
    SAME(record, graphNodeId, ours::memset::kGraphNode);     \
    SAME(record, graphId, ours::memset::kGraph)
#define SYNC(record)                                       \
    SAME(record, type, ours::sync::kType);                 \
    SAME(record, start, ours::sync::kStart);               \
    SAME(record, end, ours::sync::kEnd);                   \
    SAME(record, correlationId, ours::sync::kCorrelation); \
    SAME(record, contextId, ours::sync::kContext);         \
    SAME(record, streamId, ours::sync::kStream);           \
    SAME(record, cudaEventId, ours::sync::kEvent)
#define OVERHEAD(record)                                           \
    SAME(record, overheadKind, ours::overhead::kKind);             \
    SAME(record, objectKind, ours::overhead::kObjectKind);         \
    SAME(record, objectId.pt.processId, ours::overhead::kProcess); \
    SAME(record, objectId.pt.threadId, ours::overhead::kThread);   \
    SAME(record, objectId.dcs.deviceId, ours::overhead::kProcess); \
    SAME(record, objectId.dcs.contextId, ours::overhead::kThread); \
    SAME(record, objectId.dcs.streamId, ours::overhead::kStream);  \
    SAME(record, start, ours::overhead::kStart);                   \
    SAME(record, end, ours::overhead::kEnd)
#define EVENT(record)                                       \
    SAME(record, correlationId, ours::event::kCorrelation); \
    SAME(record, contextId, ours::event::kContext);         \
    SAME(record, streamId, ours::event::kStream);           \
    SAME(record, eventId, ours::event::kEvent)

KERNEL(CUpti_ActivityKernel7);
KERNEL(CUpti_ActivityKernel8);
COPY_OWN(CUpti_ActivityMemcpy5);
COPY(CUpti_ActivityMemcpyPtoP4);
SAME(CUpti_ActivityMemcpyPtoP4, srcDeviceId, ours::peer::kSourceDevice);
SAME(CUpti_ActivityMemcpyPtoP4, srcContextId, ours::peer::kSourceContext);
SAME(CUpti_ActivityMemcpyPtoP4, dstDeviceId, ours::peer::kDestinationDevice);
SAME(CUpti_ActivityMemcpyPtoP4, dstContextId, ours::peer::kDestinationContext);
SAME(CUpti_ActivityMemcpyPtoP4, correlationId, ours::peer::kCorrelation);
SAME(CUpti_ActivityMemcpyPtoP4, graphNodeId, ours::peer::kGraphNode);
SAME(CUpti_ActivityMemcpyPtoP4, graphId, ours::peer::kGraph);
MEMSET(CUpti_ActivityMemset4);
SYNC(CUpti_ActivitySynchronization);
OVERHEAD(CUpti_ActivityOverhead);
EVENT(CUpti_ActivityCudaEvent);
SAME(CUpti_ActivityAPI, cbid, ours::api::kCallback);
SAME(CUpti_ActivityAPI, start, ours::api::kStart);
SAME(CUpti_ActivityAPI, end, ours::api::kEnd);
SAME(CUpti_ActivityAPI, threadId, ours::api::kThread);
SAME(CUpti_ActivityAPI, correlationId, ours::api::kCorrelation);
SAME(CUpti_ActivityAPI, returnValue, ours::api::kResult);
SAME(CUpti_ActivityExternalCorrelation, externalKind, ours::external::kKind);
SAME(CUpti_ActivityExternalCorrelation, externalId, ours::external::kId);
SAME(CUpti_ActivityExternalCorrelation, correlationId, ours::external::kCorrelation);
#if CUDA_VERSION >= 12000
KERNEL(CUpti_ActivityKernel9);
#endif
#if CUPTI_API_VERSION >= 22
OVERHEAD(CUpti_ActivityOverhead2);
OVERHEAD(CUpti_ActivityOverhead3);
SAME(CUpti_ActivityOverhead3, correlationId, ours::overhead::kCorrelation);
#endif
#if CUPTI_API_VERSION >= 26
COPY_OWN(CUpti_ActivityMemcpy6);
SYNC(CUpti_ActivitySynchronization2);
SAME(CUpti_ActivitySynchronization2, returnValue, ours::sync::kResult);
EVENT(CUpti_ActivityCudaEvent2);
SAME(CUpti_ActivityCudaEvent2, deviceId, ours::event::kDevice);
SAME(CUpti_ActivityCudaEvent2, deviceTimestamp, ours::event::kTimestamp);
#endif
#if CUPTI_API_VERSION >= 130001
KERNEL(CUpti_ActivityKernel10);
SAME(CUpti_SubscriberParams, subscriberName,
     ours::Field<const char*>{offsetof(ours::SubscriberParameters, name)});
SAME(CUpti_SubscriberParams, oldSubscriberName,
     ours::Field<char*>{offsetof(ours::SubscriberParameters, old_name)});
static_assert(offsetof(CUpti_SubscriberParams, oldSubscriberSize) ==
              offsetof(ours::SubscriberParameters, old_name_size));
#endif
#if CUPTI_API_VERSION >= 130500
KERNEL(CUpti_ActivityKernel11);
KERNEL(CUpti_ActivityKernel12);
KERNEL(CUpti_ActivityKernel13);
COPY_OWN(CUpti_ActivityMemcpy7);
MEMSET(CUpti_ActivityMemset5);
EVENT(CUpti_ActivityCudaEvent3);
SAME(CUpti_ActivityCudaEvent3, deviceTimestamp, ours::event::kTimestamp);
EQUAL(CUpti_SubscriberParams_STRUCT_SIZE, sizeof(ours::SubscriberParameters));
static_assert(offsetof(CUpti_SubscriberParams, allowMultipleSubscribers) ==
              offsetof(ours::SubscriberParameters, allow_others));
EQUAL(CUPTI_ACTIVITY_ATTR_THREAD_ID_TYPE, ours::kAttributeThreadIdType);
EQUAL(CUPTI_ACTIVITY_ATTR_TIMESTAMP_CALLBACK, ours::kAttributeTimestampCallback);
EQUAL(CUPTI_ACTIVITY_ATTR_ENABLE_CUDA_EVENT_DEVICE_TIMESTAMPS, ours::kAttributeEventTimestamps);
#elif CUPTI_API_VERSION >= 130001
EQUAL(CUpti_SubscriberParams_STRUCT_SIZE, ours::kFirstSubscriberParametersSize);
#endif

// --- numbers ---

EQUAL(CUPTI_SUCCESS, ours::kSuccess);
EQUAL(CUPTI_ERROR_MAX_LIMIT_REACHED, ours::kErrorMaxLimitReached);
EQUAL(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, ours::kErrorMultipleSubscribers);
EQUAL(CUPTI_ACTIVITY_KIND_MEMCPY, ours::kMemcpy);
EQUAL(CUPTI_ACTIVITY_KIND_MEMSET, ours::kMemset);
EQUAL(CUPTI_ACTIVITY_KIND_DRIVER, ours::kDriver);
EQUAL(CUPTI_ACTIVITY_KIND_RUNTIME, ours::kRuntime);
EQUAL(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, ours::kConcurrentKernel);
EQUAL(CUPTI_ACTIVITY_KIND_OVERHEAD, ours::kOverhead);
EQUAL(CUPTI_ACTIVITY_KIND_MEMCPY2, ours::kMemcpyPeer);
EQUAL(CUPTI_ACTIVITY_KIND_CUDA_EVENT, ours::kCudaEvent);
EQUAL(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, ours::kSynchronization);
EQUAL(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, ours::kExternalCorrelation);
EQUAL(CUPTI_CB_DOMAIN_DRIVER_API, ours::kDomainDriver);
EQUAL(CUPTI_CB_DOMAIN_RUNTIME_API, ours::kDomainRuntime);
EQUAL(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM, ours::kThreadIdSystem);
EQUAL(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED, ours::kFlushForced);
EQUAL(CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC, schema::kGpuAsynchronous);
EQUAL(CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, schema::GpuCopyKind::kHostToDevice);
EQUAL(CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, schema::GpuCopyKind::kDeviceToDevice);
EQUAL(CUPTI_ACTIVITY_MEMCPY_KIND_PTOP, schema::GpuCopyKind::kPeerToPeer);
EQUAL(CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE, schema::GpuMemory::kPageable);
EQUAL(CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC, schema::GpuMemory::kManagedStatic);
EQUAL(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE, schema::GpuSyncKind::kEvent);
EQUAL(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE, schema::GpuSyncKind::kContext);
EQUAL(CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH, schema::GpuOverheadKind::kBufferFlush);
EQUAL(CUPTI_ACTIVITY_OBJECT_THREAD, 2);

EQUAL(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, ours::kBlockThreads);
EQUAL(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, ours::kBlockShared);
EQUAL(CU_DEVICE_ATTRIBUTE_WARP_SIZE, ours::kWarp);
EQUAL(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, ours::kBlockRegisters);
EQUAL(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, ours::kProcessors);
EQUAL(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, ours::kProcessorThreads);
EQUAL(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, ours::kCapabilityMajor);
EQUAL(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, ours::kCapabilityMinor);
EQUAL(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, ours::kProcessorShared);
EQUAL(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, ours::kProcessorRegisters);
EQUAL(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, ours::kBlockSharedMost);
EQUAL(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, ours::kProcessorBlocks);
EQUAL(sizeof(CUptiResult), sizeof(ours::Result));
EQUAL(sizeof(CUresult), sizeof(ours::Result));
EQUAL(sizeof(CUdevice), 4);
EQUAL(sizeof(CUpti_SubscriberHandle), sizeof(ours::Subscriber));
