// Threads that somebody has cancelled, and that go on with a lock to where they want to end. What they do on the way is no cancellation point without
// us: a first record, fork(), dlsym(). Each prints what has become of the lock, the thread, and the descriptors.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inject/sources/api/ringside.h"

enum { kRounds = 20 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pid_t child_of_thread = 0;

static void record(const char* name) {
    ringside_range_push(name);
    ringside_range_pop();
}

static void record_first(void) {
    record("first");
}

static void fork_a_child(void) {
    const pid_t child = fork();
    if (child == 0) {
        record("child");
        _exit(3);
    }
    // Not before the lock is free: waitpid() is a cancellation point.
    child_of_thread = child;
}

static void look_up(void) {
    if (dlsym(RTLD_DEFAULT, "getpid") == NULL) exit(9);
}

static void* go_on(void* work) {
    pthread_mutex_lock(&mutex);
    pthread_cancel(pthread_self());
    (*(void (**)(void))work)();
    pthread_mutex_unlock(&mutex);
    pthread_testcancel();
    return NULL;
}

static int descriptors(void) {
    DIR* folder = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(folder) != NULL) ++count;
    closedir(folder);
    return count;
}

static int lock_is_free(void) {
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += 1;
    if (pthread_mutex_timedlock(&mutex, &deadline) != 0) return 0;
    pthread_mutex_unlock(&mutex);
    return 1;
}

static void cancelled(const char* name, void (*work)(void)) {
    int ended = 0, free_again = 0, children = 0;
    const int before = descriptors();
    mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;  // what came before may have lost it
    for (int i = 0; i < kRounds; ++i) {
        pthread_t thread;
        void* result = NULL;
        child_of_thread = 0;
        pthread_create(&thread, NULL, go_on, &work);
        pthread_join(thread, &result);
        ended += result == PTHREAD_CANCELED;
        if (!lock_is_free()) break;
        ++free_again;
        int status = 0;
        if (child_of_thread > 0 && waitpid(child_of_thread, &status, 0) == child_of_thread)
            children += WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
    }
    printf("%s: %d cancelled, the lock is free after %d, descriptors %d, children %d\n", name,
           ended, free_again, descriptors() - before, children);
    fflush(stdout);  // once: children have a copy of what is not written yet
}

int main(void) {
    cancelled("first record", record_first);
    cancelled("fork", fork_a_child);
    cancelled("dlsym", look_up);
    record("main");
    return 0;
}
