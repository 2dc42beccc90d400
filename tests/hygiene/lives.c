// A program's ways to live: each mode does one of them and records ranges through the public API, so that a test sees in the dump who recorded
// what, and on stdout and in the exit status that the program is what it is without us.
//
//   lives MODE [ARGUMENT]
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/sources/api/ringside.h"

extern char** environ;

enum { kRanges = 20, kThreads = 8, kRounds = 25, kSpawns = 100 };
enum { kMinimalSignalStack = 51 };  // AT_MINSIGSTKSZ, which older headers lack

static void work(const char* name, int count) {
    for (int i = 0; i < count; ++i) {
        ringside_range_push(name);
        ringside_range_pop();
    }
}

static int ended(pid_t child) {
    int status = 0;
    if (waitpid(child, &status, 0) != child) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

static int live_fork(void) {
    work("parent", kRanges);
    const pid_t child = fork();
    if (child == 0) {
        work("child", kRanges);
        // A child of the child, which ends as a shell's does.
        const pid_t grandchild = fork();
        if (grandchild == 0) {
            work("grandchild", kRanges);
            _exit(4);
        }
        exit(ended(grandchild) + 1);
    }
    const int status = ended(child);
    work("parent", kRanges);
    printf("child %d\n", status);
    return 0;
}

/// Something to do that is not ours: so that a reader in Python need not read millions of ranges.
static void pause_a_little(void) {
    for (int i = 0; i < 200; ++i) getppid();
}

static void* work_all_the_time(void* stop) {
    while (!__atomic_load_n((int*)stop, __ATOMIC_RELAXED)) {
        work("other thread", 1);
        pause_a_little();
    }
    return NULL;
}

static int live_fork_among_threads(void) {
    int stop = 0, sum = 0;
    pthread_t others[2];
    for (int i = 0; i < 2; ++i) pthread_create(&others[i], NULL, work_all_the_time, &stop);
    for (int i = 0; i < kRounds; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            work("child", 2);
            _exit(3);
        }
        sum += ended(child);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; ++i) pthread_join(others[i], NULL);
    printf("children %d\n", sum);
    return 0;
}

/// No handler of anybody's runs in this child.
static int live_raw_fork(void) {
    work("parent", kRanges);
    const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        work("raw child", kRanges);
        // It may fork as others do, and that child is traced again.
        const pid_t grandchild = fork();
        if (grandchild == 0) {
            work("grandchild", kRanges);
            exit(6);
        }
        exit(ended(grandchild));
    }
    const int status = ended(child);
    work("parent", kRanges);
    printf("child %d\n", status);
    return 0;
}

/// A child in its parent's memory, which calls hooks there before it goes on: as code that is instrumented throughout does.
static int run_vforked(const char* self, int i) {
    const pid_t child = vfork();
    if (child == 0) {
        work("vforked", 2);
        if (i % 3 == 0) _exit(i);
        if (i % 3 == 1) execl("/nowhere", "nowhere", (char*)NULL);
        if (i % 3 == 1) _exit(i);
        execl(self, self, "nothing", (char*)NULL);
        _exit(99);
    }
    return ended(child);
}

/// Its first record is its child's.
static void* vfork_first(void* self) {
    run_vforked(self, 2);
    work("thread", kRanges);
    return NULL;
}

static int live_vfork(const char* self) {
    pthread_t early;
    pthread_create(&early, NULL, vfork_first, (void*)self);
    pthread_join(early, NULL);
    for (int i = 0; i < kRounds; ++i) {
        ringside_range_push("around");
        work("parent", 1);
        const int status = run_vforked(self, i);
        if (status != (i % 3 == 2 ? 0 : i)) printf("vfork %d: %d\n", i, status);
        ringside_range_pop();
    }
    work("parent", kRanges);
    puts("vfork");
    return 0;
}

static int live_spawn(const char* self) {
    char* arguments[] = {(char*)self, (char*)"nothing", NULL};
    int failed = 0;
    for (int i = 0; i < kSpawns; ++i) {
        pid_t child = 0;
        work("parent", 1);
        if (posix_spawn(&child, self, NULL, NULL, arguments, environ) != 0 || ended(child) != 0)
            ++failed;
    }
    printf("failed %d\n", failed);
    return 0;
}

static int live_exec(const char* self) {
    work("before", kRanges);
    execl("/nowhere", "nowhere", (char*)NULL);
    work("between", kRanges);
    execl(self, self, "after", (char*)NULL);
    return 1;
}

/// As daemons and subprocess do.
static int live_closefrom(void) {
    work("before", kRanges);
    for (int fd = 3; fd < 1024; ++fd) close(fd);
    work("after", kRanges);
    const int fd = open("/dev/null", O_RDONLY);
    printf("first descriptor %d\n", fd);
    return 0;
}

static pthread_key_t early_key;

static void at_end_of_thread(void* count) {
    work("destructor", 2);
    // The C library asks again, a few times: our own end of the thread has come and gone then.
    if (count != (void*)1) pthread_setspecific(early_key, (char*)count - 1);
}

static void* short_life(void* unused) {
    (void)unused;
    pthread_setspecific(early_key, (void*)3);
    work("thread", 5);
    return NULL;
}

static int live_threads(void) {
    pthread_key_create(&early_key, at_end_of_thread);
    for (int round = 0; round < kRounds; ++round) {
        pthread_t threads[kThreads];
        for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, short_life, NULL);
        for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
    }
    printf("threads %d\n", kRounds * kThreads);
    return 0;
}

static volatile sig_atomic_t handled, errno_kept = 1;

static void in_handler(int number) {
    (void)number;
    const int before = errno;
    work("handler", 1);
    if (errno != before) errno_kept = 0;
    ++handled;
}

enum { kUntouched = 0x5a };
/// What the kernel puts on a handler's stack is up to 3.6 KiB where registers are of 512 bits.
struct SmallStack {
    size_t bytes;
    unsigned char* lowest;  // below it: nothing
};

/// As small as programs have them, and a page that nobody may touch beneath.
static struct SmallStack use_small_stack(void) {
    const size_t page = 4096, frame = getauxval(kMinimalSignalStack);
    struct SmallStack stack = {
        frame + page > 2 * page ? (frame + 2 * page - 1) / page * page : 2 * page, NULL};
    unsigned char* memory =
        mmap(NULL, page + stack.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, page, PROT_NONE) != 0) exit(9);
    stack.lowest = memory + page;
    memset(stack.lowest, kUntouched, stack.bytes);
    const stack_t alternate = {.ss_sp = stack.lowest, .ss_size = stack.bytes};
    sigaltstack(&alternate, NULL);
    return stack;
}

static void nothing_in_handler(int number) {
    (void)number;
}

static size_t used_of(struct SmallStack stack) {
    size_t untouched = 0;
    while (untouched < stack.bytes && stack.lowest[untouched] == kUntouched) ++untouched;
    return stack.bytes - untouched;
}

/// A thread whose first record is a handler's.
static void* first_in_handler(void* unused) {
    (void)unused;
    const struct SmallStack stack = use_small_stack();
    raise(SIGUSR1);
    const size_t frame = used_of(stack);
    raise(SIGUSR2);
    fprintf(stderr, "stack %zu %zu %zu\n", stack.bytes, frame, used_of(stack));
    return NULL;
}

static int live_signals(void) {
    struct sigaction action = {.sa_handler = nothing_in_handler,
                               .sa_flags = SA_ONSTACK | SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = in_handler;
    sigaction(SIGUSR2, &action, NULL);
    pthread_t early;
    pthread_create(&early, NULL, first_in_handler, NULL);
    pthread_join(early, NULL);
    use_small_stack();
    sigaction(SIGALRM, &action, NULL);
    // Not before: what runs over a stack ends by it.
    sigaction(SIGSEGV, &action, NULL);
    struct itimerval often = {{0, 200}, {0, 200}};
    setitimer(ITIMER_REAL, &often, NULL);
    long ranges = 0;
    for (; handled < 300; ++ranges) {
        work("main", 1);
        if (ranges % 16 == 0) pause_a_little();
    }
    memset(&often, 0, sizeof often);
    setitimer(ITIMER_REAL, &often, NULL);
    raise(SIGSEGV);
    printf("errno kept %d\n", (int)errno_kept);
    // How many it was depends on the machine: the test adds it up.
    fprintf(stderr, "produced %ld %d\n", ranges, (int)handled);
    return 0;
}

static int live_namespace(void) {
    work("before", kRanges);
    const int failed = unshare(CLONE_NEWUSER);
    work("after", kRanges);
    printf("unshare %d\n", failed == 0 ? 0 : errno);
    return 0;
}

/// Produces until it is told to stop, and then says how many it were.
static int live_busy(const char* until) {
    long ranges = 0;
    while (access(until, F_OK) != 0) {
        work("busy", 1000);
        ranges += 1000;
    }
    printf("busy %d\n", ranges > 0);
    return 0;
}

// NOLINTBEGIN(readability-identifier-naming): the libraries' own names
/// What checks for other frameworks see: nothing of ours is theirs.
extern int MPI_Init(int*, char***) __attribute__((weak));
extern int ncclCommInitRank(void) __attribute__((weak));
extern int cuInit(unsigned) __attribute__((weak));
extern void* grpc_channel_create(void) __attribute__((weak));
extern int PMPI_Init(int*, char***) __attribute__((weak));
// NOLINTEND(readability-identifier-naming)

static int live_weak(void) {
    const char* names[] = {"MPI_Init",       "PMPI_Init",  "ncclCommInitRank",
                           "cuInit",         "cudaMalloc", "grpc_channel_create",
                           "nvtxRangePushA", "_exit",      "setenv"};
    printf("weak %d\n", MPI_Init || PMPI_Init || ncclCommInitRank || cuInit || grpc_channel_create);
    for (unsigned i = 0; i < sizeof names / sizeof *names; ++i) {
        Dl_info info = {0};
        void* found = dlsym(RTLD_DEFAULT, names[i]);
        const int known = found != NULL && dladdr(found, &info) != 0;
        printf("%s %s\n", names[i], known ? info.dli_fname : "-");
    }
    return 0;
}

int main(int count, char** arguments) {
    const char* mode = count > 1 ? arguments[1] : "nothing";
    const char* more = count > 2 ? arguments[2] : "";
    const struct {
        const char* name;
        int (*live)(void);
    } modes[] = {{"fork", live_fork},           {"fork_among_threads", live_fork_among_threads},
                 {"raw_fork", live_raw_fork},   {"closefrom", live_closefrom},
                 {"threads", live_threads},     {"signals", live_signals},
                 {"namespace", live_namespace}, {"weak", live_weak}};
    const struct {
        const char* name;
        int (*live)(const char*);
        const char* argument;
    } with_argument[] = {{"vfork", live_vfork, arguments[0]},
                         {"spawn", live_spawn, arguments[0]},
                         {"exec", live_exec, arguments[0]},
                         {"busy", live_busy, more}};
    for (unsigned i = 0; i < sizeof modes / sizeof *modes; ++i) {
        if (strcmp(mode, modes[i].name) == 0) return modes[i].live();
    }
    for (unsigned i = 0; i < sizeof with_argument / sizeof *with_argument; ++i) {
        if (strcmp(mode, with_argument[i].name) == 0)
            return with_argument[i].live(with_argument[i].argument);
    }
    if (strcmp(mode, "nothing") == 0) return 0;
    work(mode, kRanges);
    puts(mode);
    return 0;
}
