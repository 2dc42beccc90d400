/* What ../gpu/program.cu is on a GPU, on the fake driver: the same words, the same file of what it did. So the GPU tests' cases are run where no GPU is.
 * A fake kernel lasts 500 ticks from its call on; it is of a graph where its grid is 128 or more. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "inject/sources/api/ringside.h"

enum { STREAMS = 4, KERNEL_TICKS = 500 };
static int (*launch_it)(const void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, void*, void**, void**);
static int (*copy_it)(uint64_t, const void*, size_t, void*);
static int (*set_it)(uint64_t, unsigned char, size_t, void*);
static int (*record_it)(void*, void*);
static int (*wait_it)(void*);
static int (*attribute_of)(int*, int, int);
static FILE* truth;
static const char* range = "";
static const char* separator = "";
static double kernel_ns;

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void find_driver(void) {
    void* cuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (cuda == NULL) exit(3);
    ((int (*)(unsigned))dlsym(cuda, "cuInit"))(0);
    *(void**)&launch_it = dlsym(cuda, "cuLaunchKernel");
    *(void**)&copy_it = dlsym(cuda, "cuMemcpyHtoDAsync_v2");
    *(void**)&set_it = dlsym(cuda, "cuMemsetD8Async");
    *(void**)&record_it = dlsym(cuda, "cuEventRecord");
    *(void**)&wait_it = dlsym(cuda, "cuStreamSynchronize");
    *(void**)&attribute_of = dlsym(cuda, "cuDeviceGetAttribute");
}

static void note(const char* what, const char* name, int stream, long bytes, int value, int spun) {
    if (truth == NULL) return;
    fprintf(
        truth,
        "%s\n{\"what\": \"%s\", \"name\": \"%s\", \"stream\": %d, \"bytes\": %ld, \"value\": %d, "
        "\"range\": \"%s\"",
        separator, what, name, stream, bytes, value, range);
    if (spun)
        fprintf(truth, ", \"cycles\": %d, \"global_begin\": 0, \"global_end\": %.0f", KERNEL_TICKS,
                kernel_ns);
    fprintf(truth, "}");
    separator = ",";
}
static void launch(const char* what, const char* name, int stream, unsigned grid, int spun) {
    launch_it(name, grid, 1, 1, 1, 1, 1, 0, (void*)(intptr_t)(stream + 1), NULL, NULL);
    note(what, name, stream, 0, 0, spun);
}
static void begin(const char* name) {
    range = name;
    ringside_range_push(name);
}
static void end(void) {
    for (intptr_t stream = 1; stream <= STREAMS; ++stream) wait_it((void*)stream);
    ringside_range_pop();
    range = "";
}

static void work(const char* path) {
    int processors = 0, major = 0, minor = 0;
    attribute_of(&processors, 16, 0);
    attribute_of(&major, 75, 0);
    attribute_of(&minor, 76, 0);
    truth = fopen(path, "w");
    if (truth == NULL) exit(4);
    fprintf(truth,
            "{\"device\": \"Fake GPU 0\", \"processors\": %d, \"capability\": \"%d.%d\", "
            "\"driver\": 0, "
            "\"runtime\": 0, \"streams\": %d, \"clock_mhz\": 1, \"work\": [",
            processors, major, minor, STREAMS);
    begin("durations");
    for (int i = 0; i < 30; ++i) launch("kernel", i % 5 ? "spin_plain" : "nothing", 0, 1, i % 5);
    end();
    begin("streams");
    for (int i = 0; i < 8 * STREAMS; ++i) launch("kernel", "spin_other", i % STREAMS, 1, 1);
    end();
    begin("copies");
    for (long bytes = 4096; bytes <= 4 << 20; bytes *= 32) {
        copy_it(0, NULL, (size_t)bytes, (void*)2);
        note("copy", "HtoD", 1, bytes, 0, 0);
    }
    set_it(0, 1, 1 << 20, (void*)3);
    note("memset", "", 2, 1 << 20, 1, 0);
    end();
    begin("graph");
    for (int i = 0; i < 15; ++i)
        launch("graph kernel", i % 3 == 1 ? "graph_second" : "graph_first", 3,
               128 + (unsigned)i % 3, 0);
    end();
    begin("events");
    for (intptr_t i = 1; i <= 2; ++i) {
        record_it((void*)i, (void*)1);
        note("event", "", 0, 0, 0, 0);
    }
    launch("kernel", "spin_plain", 0, 1, 1);
    end();
    fprintf(truth, "]}\n");
    fclose(truth);
}

static int there(const char* folder, const char* name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}
static void say(const char* folder, const char* name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE* made = fopen(path, "w");
    if (made != NULL) fclose(made);
}

static void wait_for_word(const char* folder) {
    for (int i = 0; i < 100; ++i) launch("kernel", "nothing", 0, 1, 0);
    wait_it((void*)1);
    say(folder, "worked");
    for (int went = 0; !there(folder, "end"); usleep(2000)) {
        if (went || !there(folder, "go")) continue;
        went = 1;
        launch("kernel", "spin_plain", 0, 1, 1);
        say(folder, "spinning");
    }
}

static void serve(void) {
    for (char line[64]; fgets(line, sizeof line, stdin) != NULL;) {
        const int count = atoi(line);
        const double start = now_ns();
        for (int i = 0; i < count; ++i) launch("kernel", "nothing", 0, 1, 0);
        printf("%f\n", (now_ns() - start) / count);
        fflush(stdout);
        wait_it((void*)1);
    }
}

int main(int count, char** words) {
    const double start = now_ns();
    const uint64_t ticks = __rdtsc();
    usleep(100000);
    kernel_ns = KERNEL_TICKS * (now_ns() - start) / (double)(__rdtsc() - ticks);
    find_driver();
    if (count == 3 && strcmp(words[1], "work") == 0)
        work(words[2]);
    else if (count == 3 && strcmp(words[1], "wait") == 0)
        wait_for_word(words[2]);
    else
        serve();
    return 0;
}
