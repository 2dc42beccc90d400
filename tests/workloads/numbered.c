// Threads that each mark numbers, 0, 1, 2, ... without end, built with nothing but the API's header. What they have made stands in a file
// that they map: how many, and, where they take their time, when.
//
//   numbered FILE THREADS PERIOD_NS        PERIOD_NS 0: as fast as they can, times are not noted
//
// FILE: u64 made[16], then for each thread kTimes x (before, after) of CLOCK_REALTIME in ns, u64 each. It ends with SIGTERM.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "inject/sources/api/ringside.h"

enum { kMostThreads = 16, kTimes = 1 << 17 };

struct shared {
    _Atomic uint64_t made[kMostThreads];
    uint64_t times[kMostThreads][kTimes][2];
};

static struct shared* shared;
static int64_t period_ns;
static atomic_bool ending;

static uint64_t now_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void wait_until(uint64_t monotonic_ns) {
    while (now_ns(CLOCK_MONOTONIC) < monotonic_ns && !ending) {
        struct timespec pause = {0, 50000};
        if (monotonic_ns - now_ns(CLOCK_MONOTONIC) > 100000) nanosleep(&pause, NULL);
    }
}

static void* numbers(void* argument) {
    const uint64_t thread = (uint64_t)(uintptr_t)argument;
    ringside_attributes attributes = {0};
    attributes.size = sizeof attributes;
    attributes.payload_type = RINGSIDE_UNSIGNED;
    uint64_t next = now_ns(CLOCK_MONOTONIC);
    for (uint64_t i = 0; !ending; ++i) {
        attributes.payload.u = i;
        const int noted = period_ns != 0 && i < kTimes;
        if (noted) shared->times[thread][i][0] = now_ns(CLOCK_REALTIME);
        ringside_mark_with("number", &attributes);
        if (noted) shared->times[thread][i][1] = now_ns(CLOCK_REALTIME);
        atomic_store_explicit(&shared->made[thread], i + 1, memory_order_release);
        if (period_ns != 0) wait_until(next += (uint64_t)period_ns);
    }
    return NULL;
}

static void end(int signal) {
    (void)signal;
    ending = 1;
}

int main(int count, char** words) {
    if (count != 4) return 2;
    const int threads = atoi(words[2]);
    period_ns = atoll(words[3]);
    if (threads < 1 || threads > kMostThreads) return 2;
    const int file = open(words[1], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof *shared) != 0) return 1;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (shared == MAP_FAILED) return 1;
    signal(SIGTERM, end);
    pthread_t made[kMostThreads];
    for (int i = 0; i < threads; ++i) pthread_create(&made[i], NULL, numbers, (void*)(uintptr_t)i);
    for (int i = 0; i < threads; ++i) pthread_join(made[i], NULL);
    return 0;
}
