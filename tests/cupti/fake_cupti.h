/* The fake libcupti's parts: which version of each record a release emits, and what they share. */
#ifndef FAKE_CUPTI_H
#define FAKE_CUPTI_H
#include <cuda.h>
#include <cupti.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_cuda.h"

/* The version of each record that the release emits. 18 is 11.8 and 12.0, told apart by CUDA_VERSION. */
#if CUPTI_API_VERSION >= 130401
typedef CUpti_ActivityKernel13 Kernel;
typedef CUpti_ActivityMemcpy7 Memcpy;
typedef CUpti_ActivityMemset5 Memset;
#elif CUPTI_API_VERSION >= 130001
typedef CUpti_ActivityKernel10 Kernel;
typedef CUpti_ActivityMemcpy6 Memcpy;
typedef CUpti_ActivityMemset4 Memset;
#elif CUPTI_API_VERSION >= 26
typedef CUpti_ActivityKernel9 Kernel;
typedef CUpti_ActivityMemcpy6 Memcpy;
typedef CUpti_ActivityMemset4 Memset;
#elif CUDA_VERSION >= 12000
typedef CUpti_ActivityKernel9 Kernel;
typedef CUpti_ActivityMemcpy5 Memcpy;
typedef CUpti_ActivityMemset4 Memset;
#else
typedef CUpti_ActivityKernel8 Kernel;
typedef CUpti_ActivityMemcpy5 Memcpy;
typedef CUpti_ActivityMemset4 Memset;
#endif
#if CUPTI_API_VERSION >= 26
typedef CUpti_ActivitySynchronization2 Sync;
#else
typedef CUpti_ActivitySynchronization Sync;
#endif
#if CUPTI_API_VERSION >= 130500
typedef CUpti_ActivityCudaEvent3 Event;
#elif CUPTI_API_VERSION >= 26
typedef CUpti_ActivityCudaEvent2 Event;
#else
typedef CUpti_ActivityCudaEvent Event;
#endif
#if CUPTI_API_VERSION >= 22
typedef CUpti_ActivityOverhead3 Overhead;
#else
typedef CUpti_ActivityOverhead Overhead;
#endif
#define SHARING (CUPTI_API_VERSION >= 130401)

/* What FAKE_CUPTI asks for, and what is told in FAKE_CUPTI_LOG. */
int asked(const char* word);
int failure_of(uint32_t kind);
void log_call(const char* name);
#define CALLED log_call(__func__)

/* --- fake_buffers.c; with the lock where it says so --- */
struct fake_session {
    pthread_mutex_t mutex;
    uint64_t kinds;
    size_t dropped;
    CUpti_BuffersCallbackRequestFunc requested;
    CUpti_BuffersCallbackCompleteFunc completed;
    CUpti_TimestampCallbackFunc timestamp;
    int subscribed, shares, system_threads;
#if SHARING
    CUpti_BuffersCallbackRequestFunc_v2 requested2;
    CUpti_BuffersCallbackCompleteFunc_v2 completed2;
#endif
};
extern struct fake_session session;

size_t bytes_of(uint32_t kind);
uint64_t now(void);
/* With the lock. @return room for a record of that kind, or null where it is not wanted or dropped */
void* put(uint32_t kind);
/* With the lock: the record that was put last has its times once the GPU is done with it. */
void open_last(const void* record, uint64_t start, uint64_t end, uint32_t stream);
enum { ALL_STREAMS = -1 };
/* With the lock: the GPU is done with all that a stream has, the last first. */
void finish_work(int64_t stream);
/* What is full and complete goes back at once, on a thread of CUPTI's own. */
void give_full(void);
void flush(int forced);

/* --- fake_calls.c --- */
void hook_driver(void);
const char* callback_name(int runtime, uint32_t cbid);
void push_external(uint32_t kind, uint64_t id);
uint64_t pop_external(uint32_t kind);

#endif
