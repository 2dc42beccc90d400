/* Programs for the tests of faults: threads that number what they record, and say at their end how many it were.
 *
 *   writer flood THREADS COUNT SECONDS GO LEAVE   each thread makes COUNT ranges (0: no bound) in at most SECONDS, once GO is there; says
 *                                                 "thread TID COUNT LONGEST_GAP_NS" for each and "done"; leaves when LEAVE is there
 *   writer step COUNT                             COUNT ranges, SIGSTOP, one more, SIGSTOP
 *   writer steady GO LEAVE                        one thread that says its TID, one that counts to the end: "other TID COUNT"
 *   writer churn COUNT WAYS                       COUNT children, by turns of WAYS: s(pawn) v(fork) f(ork), fork and k(illed); one thread
 *                                                 records meanwhile
 *   writer leaf NUMBER                            one of these children: three ranges
 *   writer scribble SECONDS GO                    random words all over its own segment, beside a thread that records
 * A range's payload is its number within its thread, from 0.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inject/sources/api/ringside.h"

extern char** environ;

enum { kMostThreads = 16, kCheckEvery = 256, kPollUs = 1000 };

static void range(const char* name, uint64_t number) {
    ringside_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.size = sizeof attributes;
    attributes.payload_type = RINGSIDE_UNSIGNED;
    attributes.payload.u = number;
    ringside_range_push_with(name, &attributes);
    ringside_range_pop();
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void wait_for(const char* path) {
    while (access(path, F_OK) != 0) usleep(kPollUs);
}

/* --- flood --- */
struct Flood {
    pthread_t thread;
    uint64_t most;
    int64_t until_ns;
    uint64_t made;
    int64_t longest_ns;
    int tid;
};

static void* flood_thread(void* argument) {
    struct Flood* it = argument;
    it->tid = gettid();
    int64_t last = now_ns();
    for (;; ++it->made) {
        if (it->most != 0 && it->made == it->most) break;
        if (it->made % kCheckEvery == 0) {
            const int64_t now = now_ns();
            if (now - last > it->longest_ns) it->longest_ns = now - last;
            last = now;
            if (now >= it->until_ns) break;
        }
        range("flood", it->made);
    }
    return NULL;
}

static int flood(int threads, uint64_t count, double seconds, const char* go, const char* leave) {
    static struct Flood all[kMostThreads];
    wait_for(go);
    const int64_t until = now_ns() + (int64_t)(seconds * 1e9);
    for (int i = 0; i < threads; ++i) {
        all[i].most = count;
        all[i].until_ns = until;
        pthread_create(&all[i].thread, NULL, flood_thread, &all[i]);
    }
    for (int i = 0; i < threads; ++i) {
        pthread_join(all[i].thread, NULL);
        printf("thread %d %llu %lld\n", all[i].tid, (unsigned long long)all[i].made,
               (long long)all[i].longest_ns);
    }
    puts("done");
    fflush(stdout);
    wait_for(leave);
    return 0;
}

/* --- one record under a debugger's steps --- */
static int step(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) range("step", i);
    raise(SIGSTOP);
    range("last", count);
    raise(SIGSTOP);
    return 0;
}

/* --- one thread that somebody stops, one that goes on --- */
static atomic_int leaving;
static atomic_ullong other_made;

static void* stopped_thread(void* unused) {
    printf("stopped %d\n", gettid());
    fflush(stdout);
    for (uint64_t i = 0; !atomic_load(&leaving); ++i) range("stopped", i);
    return unused;
}

static void* other_thread(void* unused) {
    const int tid = gettid();
    struct timespec pause = {0, 20000};
    while (!atomic_load(&leaving)) {
        range("other", atomic_load(&other_made));
        atomic_fetch_add(&other_made, 1);
        if (atomic_load(&other_made) % 64 == 0) nanosleep(&pause, NULL);
    }
    printf("other %d %llu\n", tid, (unsigned long long)atomic_load(&other_made));
    return unused;
}

static int steady(const char* go, const char* leave) {
    pthread_t stopped, other;
    wait_for(go);
    pthread_create(&stopped, NULL, stopped_thread, NULL);
    pthread_create(&other, NULL, other_thread, NULL);
    /* So many more than a lane of 64 KiB holds: had the other lane to wait for this one, it would not get there. */
    while (access(leave, F_OK) != 0) {
        FILE* const file = fopen("made", "w");
        if (file != NULL) {
            fprintf(file, "%llu", (unsigned long long)atomic_load(&other_made));
            fclose(file);
        }
        usleep(10 * kPollUs);
    }
    atomic_store(&leaving, 1);
    pthread_join(other, NULL);
    pthread_join(stopped, NULL);
    return 0;
}

/* --- children --- */
static int leaf(uint64_t number) {
    for (int i = 0; i < 3; ++i) range("leaf", 3 * number + (uint64_t)i);
    return 0;
}

static void* churn_thread(void* unused) {
    struct timespec pause = {0, 50000};
    while (!atomic_load(&leaving)) {
        range("churn", atomic_load(&other_made));
        atomic_fetch_add(&other_made, 1);
        nanosleep(&pause, NULL);
    }
    return unused;
}

static pid_t start(char way, char** words, uint64_t number) {
    pid_t child = -1;
    if (way == 's')
        return posix_spawn(&child, words[0], NULL, NULL, words, environ) == 0 ? child : -1;
    if (way == 'v') {
        child = vfork();
        if (child == 0) {
            execve(words[0], words, environ);
            _exit(127);
        }
        return child;
    }
    child = fork();
    if (child == 0) {
        leaf(number);
        if (way == 'k') raise(SIGKILL);
        _exit(0);
    }
    return child;
}

static int churn(const char* self, uint64_t count, const char* ways) {
    pthread_t thread;
    pthread_create(&thread, NULL, churn_thread, NULL);
    uint64_t well = 0;
    for (uint64_t i = 0; i < count; ++i) {
        char number[24];
        snprintf(number, sizeof number, "%llu", (unsigned long long)i);
        char* words[] = {(char*)self, "leaf", number, NULL};
        int status = -1;
        const char way = ways[i % strlen(ways)];
        const pid_t child = start(way, words, i);
        if (child > 0 && waitpid(child, &status, 0) == child &&
            status == (way == 'k' ? SIGKILL : 0))
            ++well;
    }
    atomic_store(&leaving, 1);
    pthread_join(thread, NULL);
    printf("children %llu made %llu\n", (unsigned long long)well,
           (unsigned long long)atomic_load(&other_made));
    return well == count ? 0 : 1;
}

/* --- a segment that goes mad --- */
static void* scribbling_thread(void* argument) {
    char* range_text = argument;
    unsigned long long from = 0, to = 0;
    sscanf(range_text, "%llx-%llx", &from, &to);
    /* The header, the names, the lane table and the first lane: what an agent reads. */
    const uint64_t words = ((to - from < (1 << 20) ? to - from : (1 << 20))) / 8;
    uint64_t state = 0x9e3779b97f4a7c15ull ^ (uint64_t)getpid();
    while (!atomic_load(&leaving)) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        volatile uint64_t* const word = (uint64_t*)(uintptr_t)from + (state >> 33) % words;
        *word = (state & 3) == 0 ? 0 : (state & 3) == 1 ? state : *word ^ (1ull << (state >> 58));
    }
    return NULL;
}

/* The process is beyond help once its own lane is overwritten, so what records here only keeps the agent reading. */
static int scribble(double seconds, const char* go) {
    char line[512], found[64] = "";
    range("before", 0);
    FILE* const maps = fopen("/proc/self/maps", "r");
    const char* const job = getenv("RINGSIDE_DIR");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        const char* const mapped = strrchr(line, '/');
        /* A segment's name begins with its pid namespace; the directory's own pages have words for names. */
        if (job != NULL && strstr(line, job) != NULL && strstr(line, "rw-s") != NULL &&
            isdigit((unsigned char)mapped[1]))
            snprintf(found, sizeof found, "%.*s", (int)strcspn(line, " "), line);
    }
    if (maps != NULL) fclose(maps);
    if (found[0] == 0) return 3;
    wait_for(go);
    puts("scribbling");
    fflush(stdout);
    pthread_t thread;
    pthread_create(&thread, NULL, scribbling_thread, found);
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
    atomic_store(&leaving, 1);
    pthread_join(thread, NULL);
    puts("scribbled");
    fflush(stdout);
    /* Our own end would read what is now nonsense: a process with such memory may well die, and that is not what is looked at here. */
    _exit(0);
}

int main(int count, char** words) {
    const char* const mode = count > 1 ? words[1] : "";
    if (strcmp(mode, "flood") == 0 && count == 7)
        return flood(atoi(words[2]), strtoull(words[3], NULL, 10), atof(words[4]), words[5],
                     words[6]);
    if (strcmp(mode, "step") == 0 && count == 3) return step(strtoull(words[2], NULL, 10));
    if (strcmp(mode, "steady") == 0 && count == 4) return steady(words[2], words[3]);
    if (strcmp(mode, "churn") == 0 && count == 4)
        return churn(words[0], strtoull(words[2], NULL, 10), words[3]);
    if (strcmp(mode, "leaf") == 0 && count == 3) return leaf(strtoull(words[2], NULL, 10));
    if (strcmp(mode, "scribble") == 0 && count == 4) return scribble(atof(words[2]), words[3]);
    return 2;
}
