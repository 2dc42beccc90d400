// Preloaded, it makes a process's first thread late, as a busy machine does: for a second it has the signal mask that it was made with and does nothing.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static void* (*late_run)(void*);
static void* late_argument;

static void* begin_late(void* unused) {
    (void)unused;
    usleep(1000000);
    return late_run(late_argument);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
    static atomic_flag made = ATOMIC_FLAG_INIT;
    int (*create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    *(void**)&create = dlsym(RTLD_NEXT, "pthread_create");
    if (atomic_flag_test_and_set(&made)) return create(thread, attributes, run, argument);
    late_run = run;
    late_argument = argument;
    return create(thread, attributes, begin_late, NULL);
}
