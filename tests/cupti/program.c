/* A "CUDA" program: does what its arguments say, one after the other. It finds the driver and CUPTI as programs do, by the loader.
 *   cuda, cupti:FILE      loads the library        init         cuInit()           runtime      calls go through the runtime
 *   inject                calls what the driver would call, without one
 *   launch:N:STREAM       N kernels                copy peer memset event sync:STREAM
 *   kernel:NAME:STREAM    one by its name          shape:DEVICE:AFTER:LENGTH  of all work from now on, in ticks
 *   iteration:NAME        a boundary of ours       host:US      the program computes
 *   push:NAME pop         a range of ours          serve leave  a request of ours  external:ID  unexternal
 *   work:NAME             a kernel every other millisecond until that word
 *   announce:NAME await:NAME  words with the test  fork:N       N launches in a child   kill quick */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inject/sources/api/ringside.h"

static void* cuda;
static void* cupti;
static ringside_call call;

static void* function(void* library, const char* name) {
    void* found = library != NULL ? dlsym(library, name) : NULL;
    if (found == NULL) {
        fprintf(stderr, "program: no %s\n", name);
        exit(3);
    }
    return found;
}

static void launch(const char* name, int count, int stream) {
    int (*call_it)(const void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   unsigned, void*, void**, void**) = function(cuda, "cuLaunchKernel");
    for (int i = 0; i < count; ++i)
        call_it(name, 128, 1, 1, 256, 1, 1, 0, (void*)(intptr_t)stream, NULL, NULL);
}

static void compute(int us) {
    const clock_t end = clock() + (clock_t)us * CLOCKS_PER_SEC / 1000000;
    while (clock() < end) {
    }
}

static char* condition(const char* name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", getenv("CONDITIONS"), name);
    return path;
}

static ringside_rpc request(void) {
    ringside_rpc what = {0};
    what.size = sizeof what;
    what.method = "served";
    what.peer = "somebody";
    return what;
}

static void run(char* word) {
    char* first = strchr(word, ':');
    if (first != NULL) *first++ = 0;
    char* second = first != NULL ? strchr(first, ':') : NULL;
    if (second != NULL) *second++ = 0;
    const int number = first != NULL ? atoi(first) : 0;
#define IS(text) (strcmp(word, text) == 0)
    if (IS("cuda"))
        cuda = dlopen("libcuda.so.1", RTLD_NOW);
    else if (IS("cupti"))
        cupti = dlopen(first, RTLD_NOW);
    else if (IS("init"))
        ((int (*)(unsigned))function(cuda, "cuInit"))(0);
    else if (IS("inject"))
        ((int (*)(void))function(dlopen(getenv("CUDA_INJECTION64_PATH"), RTLD_NOW),
                                 "InitializeInjection"))();
    else if (IS("runtime"))
        ((void (*)(int))function(cuda, "fake_cuda_use_runtime"))(1);
    else if (IS("launch"))
        launch("_Z6kernelPf", number, second != NULL ? atoi(second) : 1);
    else if (IS("kernel"))
        launch(first, 1, atoi(second));
    else if (IS("shape"))
        ((void (*)(uint32_t, uint32_t, uint32_t))function(cuda, "fake_cuda_shape"))(
            (uint32_t)number, (uint32_t)atoi(second), (uint32_t)atoi(strchr(second, ':') + 1));
    else if (IS("host"))
        compute(number);
    else if (IS("iteration"))
        ringside_iteration(first);
    else if (IS("copy"))
        ((int (*)(uint64_t, const void*, size_t, void*))function(cuda, "cuMemcpyHtoDAsync_v2"))(
            0, NULL, 4096, (void*)1);
    else if (IS("peer"))
        ((int (*)(uint64_t, void*, uint64_t, void*, size_t, void*))function(
            cuda, "cuMemcpyPeerAsync"))(0, NULL, 0, NULL, 8192, (void*)1);
    else if (IS("memset"))
        ((int (*)(uint64_t, unsigned char, size_t, void*))function(cuda, "cuMemsetD8Async"))(
            0, 7, 512, (void*)1);
    else if (IS("event"))
        ((int (*)(void*, void*))function(cuda, "cuEventRecord"))((void*)17, (void*)1);
    else if (IS("sync"))
        ((int (*)(void*))function(cuda, "cuStreamSynchronize"))(
            (void*)(intptr_t)(first != NULL ? number : 1));
    else if (IS("push"))
        ringside_range_push(first);
    else if (IS("pop"))
        ringside_range_pop();
    else if (IS("serve")) {
        ringside_request id = {1, 2, 3};
        const ringside_rpc what = request();
        call = ringside_server_begin(&id, &what);
    } else if (IS("leave")) {
        ringside_server_end(&call, RINGSIDE_OK, 0);
    } else if (IS("external"))
        ((int (*)(int, uint64_t))function(cupti, "cuptiActivityPushExternalCorrelationId"))(
            5, (uint64_t)number);
    else if (IS("unexternal"))
        ((int (*)(int, uint64_t*))function(cupti, "cuptiActivityPopExternalCorrelationId"))(5,
                                                                                            NULL);
    else if (IS("announce"))
        close(open(condition(first), O_WRONLY | O_CREAT, 0600));
    else if (IS("await"))
        while (access(condition(first), F_OK) != 0) usleep(2000);
    else if (IS("work"))
        for (; access(condition(first), F_OK) != 0; usleep(2000)) {
            launch("_Z6kernelPf", 1, 1);
            ((int (*)(void*))function(cuda, "cuStreamSynchronize"))((void*)1);
        }
    else if (IS("fork")) {
        const pid_t child = fork();
        if (child == 0) {
            launch("_Z5childPf", number, 1);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    } else if (IS("kill"))
        kill(getpid(), SIGKILL);
    else if (IS("quick"))
        _exit(0);
    else {
        fprintf(stderr, "program: %s?\n", word);
        exit(2);
    }
}

int main(int count, char** words) {
    for (int i = 1; i < count; ++i) run(words[i]);
    return 0;
}
