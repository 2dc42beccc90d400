/* The records of one call that the fake driver tells of: the call's own, the work's, and the numbers that were pushed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fake_cupti.h"

static __thread uint64_t external[8][16];
static __thread int external_depth[8];
static uint32_t next_correlation;

static void put_call(uint32_t kind, uint32_t cbid, uint32_t correlation, uint64_t start) {
    CUpti_ActivityAPI* call = put(kind);
    if (call == NULL) return;
    call->cbid = cbid;
    call->start = start;
    call->end = now();
    call->processId = (uint32_t)getpid();
    call->threadId =
        session.system_threads ? (uint32_t)syscall(SYS_gettid) : (uint32_t)pthread_self();
    call->correlationId = correlation;
}

#define PLACE(record)                                                                       \
    ((record)->deviceId = call->shape.device, (record)->contextId = 2 + call->shape.device, \
     (record)->streamId = call->stream, (record)->correlationId = correlation)

static void put_work(const struct fake_call* call, uint32_t correlation, uint64_t start) {
    const uint64_t begin = start + 1000 * call->value + call->shape.after,
                   end = begin + call->shape.length;
    if (call->what == FAKE_LAUNCH) {
        Kernel* kernel = put(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
        if (kernel == NULL) return;
        PLACE(kernel);
        kernel->name = call->name;
        kernel->gridX = (int32_t)call->grid, kernel->gridY = 2, kernel->gridZ = 3;
        kernel->blockX = (int32_t)call->block, kernel->blockY = 4, kernel->blockZ = 5;
        kernel->staticSharedMemory = 64, kernel->dynamicSharedMemory = 96;
        kernel->registersPerThread = 40;
        if (call->grid >= 128) kernel->graphNodeId = 77 + call->grid - 128, kernel->graphId = 7;
        open_last(kernel, begin, end, call->stream);
    } else if (call->what == FAKE_COPY) {
        Memcpy* copy = put(CUPTI_ACTIVITY_KIND_MEMCPY);
        if (copy == NULL) return;
        PLACE(copy);
        copy->copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
        copy->srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED,
        copy->dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
        copy->flags = CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC;
        copy->bytes = call->bytes;
        open_last(copy, begin, end, call->stream);
    } else if (call->what == FAKE_PEER_COPY) {
        CUpti_ActivityMemcpyPtoP4* copy = put(CUPTI_ACTIVITY_KIND_MEMCPY2);
        if (copy == NULL) return;
        PLACE(copy);
        copy->copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
        copy->srcKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
        copy->dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
        copy->srcDeviceId = 1, copy->srcContextId = 3, copy->dstDeviceId = 0,
        copy->dstContextId = 2;
        copy->bytes = call->bytes;
        copy->graphNodeId = 78, copy->graphId = 8;
        open_last(copy, begin, end, call->stream);
    } else if (call->what == FAKE_MEMSET) {
        Memset* memset_record = put(CUPTI_ACTIVITY_KIND_MEMSET);
        if (memset_record == NULL) return;
        PLACE(memset_record);
        memset_record->value = call->value, memset_record->bytes = call->bytes;
        memset_record->memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
        open_last(memset_record, begin, end, call->stream);
    } else if (call->what == FAKE_SYNC) {
        Sync* sync = put(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
        if (sync == NULL) return;
        sync->type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
        sync->start = start, sync->end = now();
        sync->correlationId = correlation, sync->contextId = 3, sync->streamId = call->stream;
        sync->cudaEventId = (uint32_t)CUPTI_SYNCHRONIZATION_INVALID_VALUE;
#if CUPTI_API_VERSION >= 26
        sync->returnValue = 9;
#endif
        Overhead* overhead = put(CUPTI_ACTIVITY_KIND_OVERHEAD);
        if (overhead == NULL) return;
        overhead->overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
        overhead->objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
        overhead->objectId.pt.processId = (uint32_t)getpid(),
        overhead->objectId.pt.threadId = (uint32_t)syscall(SYS_gettid);
        overhead->start = start, overhead->end = now();
#if CUPTI_API_VERSION >= 22
        overhead->correlationId = correlation;
#endif
    } else if (call->what == FAKE_EVENT) {
        Event* event = put(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
        if (event == NULL) return;
        event->correlationId = correlation, event->contextId = 3, event->streamId = call->stream,
        event->eventId = call->value;
#if CUPTI_API_VERSION >= 26
        event->deviceId = 1, event->deviceTimestamp = start;
#endif
    }
}

static const uint32_t driver_cbids[FAKE_KINDS] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,      CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeerAsync,   CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async,
    CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize, CUPTI_DRIVER_TRACE_CBID_cuEventRecord};
static const uint32_t runtime_cbids[FAKE_KINDS] = {
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyPeerAsync_v4000,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020};

static void on_call(const struct fake_call* call) {
    if (__atomic_load_n(&session.kinds, __ATOMIC_ACQUIRE) == 0) return;
    pthread_mutex_lock(&session.mutex);
    const uint32_t correlation = ++next_correlation;
    const uint64_t start = now();
    for (uint32_t kind = 0; kind < 8; ++kind) {
        if (external_depth[kind] == 0) continue;
        CUpti_ActivityExternalCorrelation* link = put(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
        if (link == NULL) continue;
        link->externalKind = (CUpti_ExternalCorrelationKind)kind;
        link->externalId = external[kind][external_depth[kind] - 1];
        link->correlationId = correlation;
    }
    put_work(call, correlation, start);
    put_call(CUPTI_ACTIVITY_KIND_DRIVER, driver_cbids[call->what], correlation,
             call->runtime ? start + 1 : start);
    if (call->runtime)
        put_call(CUPTI_ACTIVITY_KIND_RUNTIME, runtime_cbids[call->what], correlation, start);
    if (call->what == FAKE_SYNC && !asked("late") && !asked("never"))
        finish_work(asked("streams") ? (int64_t)call->stream : ALL_STREAMS);
    pthread_mutex_unlock(&session.mutex);
    if (call->what == FAKE_SYNC) give_full();
}

__attribute__((constructor)) void hook_driver(void) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void (*set)(fake_hook) =
        driver != NULL ? (void (*)(fake_hook))dlsym(driver, "fake_cuda_set_hook") : NULL;
    if (set != NULL) set(on_call);
}

const char* callback_name(int is_runtime, uint32_t cbid) {
    static const char* const driver[FAKE_KINDS] = {"cuLaunchKernel",      "cuMemcpyHtoDAsync_v2",
                                                   "cuMemcpyPeerAsync",   "cuMemsetD8Async",
                                                   "cuStreamSynchronize", "cuEventRecord"};
    static const char* const runtime[FAKE_KINDS] = {
        "cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020",       "cudaMemcpyPeerAsync_v4000",
        "cudaMemsetAsync_v3020",  "cudaStreamSynchronize_v3020", NULL};
    for (int i = 0; i < FAKE_KINDS; ++i) {
        if ((is_runtime ? runtime_cbids : driver_cbids)[i] == cbid)
            return (is_runtime ? runtime : driver)[i];
    }
    return NULL;
}

void push_external(uint32_t kind, uint64_t id) {
    external[kind][external_depth[kind]++] = id;
}
uint64_t pop_external(uint32_t kind) {
    return external[kind][--external_depth[kind]];
}
