// A program that iterates in a known rhythm, built with nothing but the API's header: each turn is a range "step" around a range "work", both with
// the turn's number, and then a boundary "turn". A second thread makes ranges "beat" with a number of their own.
//
//   iterating MICROSECONDS [child|never]     child: a forked one beats, too, and never iterates; never: turns without boundaries
//
// SIGUSR1: it goes on without boundaries, and its ranges are called "idle". SIGTERM ends it.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inject/sources/api/ringside.h"

static atomic_bool ending, idle;
static long period_us;

static void on_signal(int number) {
    atomic_store(number == SIGUSR1 ? &idle : &ending, 1);
}

static void rest(long us) {
    const struct timespec pause = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&pause, NULL);
}

static void push(const char* name, uint64_t number) {
    ringside_attributes attributes = {0};
    attributes.size = sizeof attributes;
    attributes.payload_type = RINGSIDE_UNSIGNED;
    attributes.payload.u = number;
    ringside_range_push_with(name, &attributes);
}

static void* beats(void* argument) {
    (void)argument;
    for (uint64_t i = 0; !atomic_load(&ending); ++i) {
        push("beat", i);
        ringside_range_pop();
        rest(period_us / 3);
    }
    return NULL;
}

int main(int count, char** words) {
    if (count < 2) return 2;
    period_us = atol(words[1]);
    const char* mode = count > 2 ? words[2] : "";
    signal(SIGTERM, on_signal);
    signal(SIGUSR1, on_signal);
    const pid_t child = strcmp(mode, "child") == 0 ? fork() : -1;
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        beats(NULL);
        return 0;
    }
    pthread_t other;
    pthread_create(&other, NULL, beats, NULL);
    const int never = strcmp(mode, "never") == 0;
    for (uint64_t i = 0; !atomic_load(&ending); ++i) {
        const int turns = !never && !atomic_load(&idle);
        push(turns ? "step" : "idle", i);
        push("work", i);
        rest(period_us);
        ringside_range_pop();
        ringside_range_pop();
        if (turns) ringside_iteration("turn");
    }
    pthread_join(other, NULL);
    if (child > 0) {
        kill(child, SIGTERM);
        waitpid(child, NULL, 0);
    }
    return 0;
}
