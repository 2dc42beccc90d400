/* A libcuda.so.1 that has no GPU: it loads what CUDA_INJECTION64_PATH names at the first cuInit(), as the driver does, tells the fake CUPTI of each
 * call, and knows two devices. */
#define _GNU_SOURCE
#include "fake_cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

static fake_hook hook;
static int runtime_calls;
static struct fake_shape shape = {1, 0, 500};
static pthread_once_t once = PTHREAD_ONCE_INIT;

API void fake_cuda_set_hook(fake_hook given) {
    __atomic_store_n(&hook, given, __ATOMIC_RELEASE);
}
API void fake_cuda_use_runtime(int use) {
    runtime_calls = use;
}

API void fake_cuda_shape(uint32_t device, uint32_t after, uint32_t length) {
    shape = (struct fake_shape){device, after, length};
}

static void inject(void) {
    const char* path = getenv("CUDA_INJECTION64_PATH");
    if (path == NULL) return;
    void* library = dlopen(path, RTLD_NOW);
    int (*entry)(void) =
        library != NULL ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
    if (entry == NULL) {
        fprintf(stderr, "fake cuda: %s: %s\n", path, dlerror());
    } else {
        entry();
    }
}

API int cuInit(unsigned flags) {
    (void)flags;
    pthread_once(&once, inject);
    return 0;
}

static int tell(struct fake_call call) {
    call.runtime = runtime_calls;
    call.shape = shape;
    fake_hook present = __atomic_load_n(&hook, __ATOMIC_ACQUIRE);
    if (present != NULL) present(&call);
    return 0;
}

API int cuLaunchKernel(const void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                       unsigned by, unsigned bz, unsigned shared, void* stream, void** parameters,
                       void** extra) {
    (void)gy, (void)gz, (void)by, (void)bz, (void)shared, (void)parameters, (void)extra;
    return tell((struct fake_call){
        FAKE_LAUNCH, 0, function, gx, bx, 0, (uint32_t)(uintptr_t)stream, 0, {0}});
}
API int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
    (void)to, (void)from;
    return tell(
        (struct fake_call){FAKE_COPY, 0, NULL, 0, 0, bytes, (uint32_t)(uintptr_t)stream, 0, {0}});
}
API int cuMemcpyPeerAsync(uint64_t to, void* to_context, uint64_t from, void* from_context,
                          size_t bytes, void* stream) {
    (void)to, (void)to_context, (void)from, (void)from_context;
    return tell((struct fake_call){
        FAKE_PEER_COPY, 0, NULL, 0, 0, bytes, (uint32_t)(uintptr_t)stream, 0, {0}});
}
API int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void* stream) {
    (void)to;
    return tell((struct fake_call){
        FAKE_MEMSET, 0, NULL, 0, 0, bytes, (uint32_t)(uintptr_t)stream, value, {0}});
}
API int cuStreamSynchronize(void* stream) {
    return tell(
        (struct fake_call){FAKE_SYNC, 0, NULL, 0, 0, 0, (uint32_t)(uintptr_t)stream, 0, {0}});
}
API int cuEventRecord(void* event, void* stream) {
    return tell((struct fake_call){FAKE_EVENT,
                                   0,
                                   NULL,
                                   0,
                                   0,
                                   0,
                                   (uint32_t)(uintptr_t)stream,
                                   (uint32_t)(uintptr_t)event,
                                   {0}});
}

API int cuDriverGetVersion(int* version) {
    const char* told = getenv("FAKE_CUDA_DRIVER");
    *version = told != NULL ? atoi(told) : 13050;
    return 0;
}
API int cuDeviceGetCount(int* count) {
    *count = 2;
    return 0;
}
API int cuDeviceGet(int* device, int number) {
    *device = number;
    return number < 2 ? 0 : 101;
}
API int cuDeviceGetName(char* name, int bytes, int device) {
    snprintf(name, (size_t)bytes, "Fake GPU %d", device);
    return 0;
}
API int cuDeviceTotalMem_v2(size_t* bytes, int device) {
    *bytes = (size_t)(80 + device) << 30;
    return 0;
}
API int cuDeviceGetAttribute(int* value, int attribute, int device) {
    *value = 1000 * (device + 1) + attribute;
    return 0;
}
