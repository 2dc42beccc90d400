/* A libcupti of whichever release its headers are: NVIDIA's own records, laid down in the version that the release emits, through the real protocol
 * of requested and completed buffers. A record lies in its buffer from the call on and is complete when the "GPU" is done with it, in the reverse
 * order; a buffer goes back when it is full and complete, or at a flush. What goes wrong is asked for in FAKE_CUPTI, words with commas between:
 *   busy          somebody else holds CUPTI            holder_shares  ... and would share it
 *   version       cuptiGetVersion() fails              enable=N, enable=KIND:N  fails with N
 *   late          work is done at a forced flush only  never          ... not even then
 *   streams       work is done when its own stream is waited for, or at a forced flush
 *   no_buffers    requests are made and what they give is not used: all is dropped
 * Each entry point that is called is written to FAKE_CUPTI_LOG, once; and how many kernels have gone back. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "fake_cupti.h"

#define API __attribute__((visibility("default"))) CUptiResult

static struct CUpti_Subscriber_st { int unused; } subscriber;

API cuptiGetVersion(uint32_t* version) {
    CALLED;
    if (asked("version")) return CUPTI_ERROR_UNKNOWN;
    *version = CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}

API cuptiSubscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback, void* data) {
    (void)callback, (void)data;
    CALLED;
    if (asked("busy") || asked("holder_shares") || session.subscribed)
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    session.subscribed = 1;
    hook_driver();
    *handle = &subscriber;
    return CUPTI_SUCCESS;
}

#if CUPTI_API_VERSION >= 130001
API cuptiSubscribe_v2(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback, void* data,
                      CUpti_SubscriberParams* given) {
    CALLED;
    int shares = 0;
#if SHARING
    shares = given != NULL && given->structSize == CUpti_SubscriberParams_STRUCT_SIZE &&
             given->allowMultipleSubscribers;
#endif
    if (asked("holder_shares") && shares) {
        session.subscribed = session.shares = 1;
        hook_driver();
        *handle = &subscriber;
        return CUPTI_SUCCESS;
    }
    const CUptiResult result = cuptiSubscribe(handle, callback, data);
    if (result != CUPTI_SUCCESS && given != NULL && given->oldSubscriberName != NULL)
        snprintf(given->oldSubscriberName, given->oldSubscriberSize, "CUPTI for Other Tool");
    if (result == CUPTI_SUCCESS) session.shares = shares;
    return result;
}
#endif

API cuptiUnsubscribe(CUpti_SubscriberHandle handle) {
    CALLED;
    if (handle != &subscriber) return CUPTI_ERROR_INVALID_PARAMETER;
    session.subscribed = session.shares = 0;
    return CUPTI_SUCCESS;
}

API cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc function) {
    CALLED;
    if (session.shares || session.kinds != 0) return CUPTI_ERROR_INVALID_OPERATION;
    session.timestamp = function;
    return CUPTI_SUCCESS;
}

API cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                   CUpti_BuffersCallbackCompleteFunc complete) {
    CALLED;
    if (session.shares) return CUPTI_ERROR_INVALID_OPERATION;
    session.requested = request;
    session.completed = complete;
    return CUPTI_SUCCESS;
}

API cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
    CALLED;
    session.system_threads = type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM;
    return CUPTI_SUCCESS;
}

static CUptiResult enable(CUpti_ActivityKind kind) {
    if (failure_of((uint32_t)kind) != 0) return (CUptiResult)failure_of((uint32_t)kind);
    if (bytes_of((uint32_t)kind) == 0) return CUPTI_ERROR_INVALID_KIND;
    pthread_mutex_lock(&session.mutex);
    __atomic_fetch_or(&session.kinds, 1ull << kind, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&session.mutex);
    return CUPTI_SUCCESS;
}
static CUptiResult disable(CUpti_ActivityKind kind) {
    pthread_mutex_lock(&session.mutex);
    __atomic_fetch_and(&session.kinds, ~(1ull << kind), __ATOMIC_RELEASE);
    pthread_mutex_unlock(&session.mutex);
    return CUPTI_SUCCESS;
}
API cuptiActivityEnable(CUpti_ActivityKind kind) {
    CALLED;
    return session.shares ? CUPTI_ERROR_INVALID_OPERATION : enable(kind);
}
API cuptiActivityDisable(CUpti_ActivityKind kind) {
    CALLED;
    return disable(kind);
}

API cuptiActivityFlushAll(uint32_t flag) {
    CALLED;
    flush(flag != 0);
    return CUPTI_SUCCESS;
}

API cuptiActivityGetNextRecord(uint8_t* bytes, size_t valid, CUpti_Activity** record) {
    uint8_t* at = bytes;
    if (*record != NULL) {
        uint32_t kind = 0;
        memcpy(&kind, *record, sizeof kind);
        at = (uint8_t*)*record + bytes_of(kind);
    }
    if (at >= bytes + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity*)at;
    return CUPTI_SUCCESS;
}

API cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t* count) {
    (void)context, (void)stream;
    CALLED;
    *count = __atomic_exchange_n(&session.dropped, 0, __ATOMIC_RELAXED);
    return CUPTI_SUCCESS;
}

API cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char** name) {
    *name = callback_name(domain == CUPTI_CB_DOMAIN_RUNTIME_API, cbid);
    return *name != NULL ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

API cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id) {
    push_external((uint32_t)kind, id);
    return CUPTI_SUCCESS;
}
API cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t* last) {
    const uint64_t id = pop_external((uint32_t)kind);
    if (last != NULL) *last = id;
    return CUPTI_SUCCESS;
}

#if SHARING
API cuptiActivityRegisterCallbacks_v2(CUpti_SubscriberHandle handle,
                                      CUpti_BuffersCallbackRequestFunc_v2 request,
                                      CUpti_BuffersCallbackCompleteFunc_v2 complete) {
    (void)handle;
    CALLED;
    session.requested2 = request;
    session.completed2 = complete;
    return CUPTI_SUCCESS;
}
API cuptiActivitySetAttribute_v2(CUpti_SubscriberHandle handle, CUpti_ActivityAttribute attribute,
                                 size_t* size, void* value) {
    (void)handle;
    CALLED;
    if (attribute == CUPTI_ACTIVITY_ATTR_TIMESTAMP_CALLBACK && *size == sizeof session.timestamp)
        memcpy(&session.timestamp, value, sizeof session.timestamp);
    else if (attribute == CUPTI_ACTIVITY_ATTR_THREAD_ID_TYPE && *size == 4)
        session.system_threads = *(uint32_t*)value == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM;
    else if (attribute != CUPTI_ACTIVITY_ATTR_ENABLE_CUDA_EVENT_DEVICE_TIMESTAMPS || *size != 1)
        return CUPTI_ERROR_INVALID_PARAMETER;
    return CUPTI_SUCCESS;
}
API cuptiActivityEnable_v2(CUpti_SubscriberHandle handle, CUpti_ActivityKind kind,
                           CUpti_ActivityConfig* config) {
    (void)handle, (void)config;
    CALLED;
    return enable(kind);
}
API cuptiActivityDisable_v2(CUpti_SubscriberHandle handle, CUpti_ActivityKind kind,
                            CUpti_ActivityConfig* config) {
    (void)handle, (void)config;
    CALLED;
    return disable(kind);
}
API cuptiActivityGetNextRecord_v2(CUpti_SubscriberHandle handle, uint8_t* bytes, size_t valid,
                                  CUpti_Activity** record) {
    (void)handle;
    return cuptiActivityGetNextRecord(bytes, valid, record);
}
API cuptiActivityGetNumDroppedRecords_v2(CUpti_SubscriberHandle handle, CUcontext context,
                                         uint32_t stream, size_t* count) {
    (void)handle;
    return cuptiActivityGetNumDroppedRecords(context, stream, count);
}
#endif
