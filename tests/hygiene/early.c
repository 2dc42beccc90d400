// A library that is at work before main(), and before a preload's own constructor: it records, forks, loads a library and starts a thread that goes on into main().
// Once more as what uses it (-DUSER).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/sources/api/ringside.h"

enum { kRanges = 20 };

static inline void work(const char* name) {
    for (int i = 0; i < kRanges; ++i) {
        ringside_range_push(name);
        ringside_range_pop();
    }
}

#ifdef USER

void finish_early(void);

int main(void) {
    work("main");
    finish_early();
    return 0;
}

#else

static pthread_t thread;
static pthread_mutex_t in_main = PTHREAD_MUTEX_INITIALIZER;
static int loaded = 0, forked = -1;

static int load(void) {
    void* const library = dlopen("libm.so.6", RTLD_NOW);
    return library != NULL && dlsym(library, "cos") != NULL &&
           dlsym(RTLD_DEFAULT, "getpid") != NULL;
}

static void* go_on(void* itself) {
    work("early thread");
    const int found = load();
    pthread_mutex_lock(&in_main);
    work("late thread");
    return found != 0 ? itself : NULL;
}

__attribute__((constructor)) static void begin(void) {
    work("early");
    loaded = load();
    pthread_mutex_lock(&in_main);
    if (pthread_create(&thread, NULL, go_on, &thread) != 0) abort();
    const pid_t child = fork();
    if (child == 0) {
        work("early child");
        _exit(3);
    }
    int status = 0;
    if (waitpid(child, &status, 0) == child) forked = WEXITSTATUS(status);
}

void finish_early(void) {
    void* found = NULL;
    pthread_mutex_unlock(&in_main);
    pthread_join(thread, &found);
    printf("loaded %d, by the thread %d, child %d\n", loaded, found != NULL, forked);
}

__attribute__((destructor)) static void end(void) {
    work("at the end");
}

#endif
