/* A debugger that stops a traced program between any two instructions, for the tests of faults.
 *
 *   stepper kill STEPS COMMAND...     lets COMMAND run to its first SIGSTOP, then STEPS single instructions, and kills it there. Says
 *                                     "pid PID steps N committed CELLS records N open N", as its first lane says; N < STEPS: it came to its second SIGSTOP
 *   stepper hold TID SHIM OUT RELEASE stops one thread inside the shim's code (SHIM: its file's name), makes OUT, and lets it go on when RELEASE is there
 *
 * Exit status 77: ptrace is not allowed here.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    kSkipped = 77,
    kPollUs = 1000,
    /* schema/segment.hpp: where the lane table stands and, of a lane, its words. */
    kLaneTableOffset = 8192 + 8192 * 16 + 393216 + 1024 * 32,
    kRecordsAt = 32,
    kOpenDepthAt = 40,
};

/* The words of the process's first lane, read from its segment's file: what an agent would see now. */
static int tell_lane(pid_t pid, long steps) {
    char folder[4096], wanted[32];
    snprintf(folder, sizeof folder, "%s/%s", getenv("RINGSIDE_DIR"), getenv("RINGSIDE_JOB"));
    snprintf(wanted, sizeof wanted, ".%d.", pid);
    DIR* const files = opendir(folder);
    const struct dirent* entry = NULL;
    while (files != NULL && (entry = readdir(files)) != NULL &&
           strstr(entry->d_name, wanted) == NULL)
        continue;
    const int file = entry == NULL ? -1 : openat(dirfd(files), entry->d_name, O_RDONLY);
    uint64_t lane = 0, committed = 0, records = 0;
    uint32_t open_depth = 0;
    const int told =
        file >= 0 && pread(file, &lane, sizeof lane, kLaneTableOffset) == sizeof lane &&
        pread(file, &committed, sizeof committed, (off_t)lane) == sizeof committed &&
        pread(file, &records, sizeof records, (off_t)lane + kRecordsAt) == sizeof records &&
        pread(file, &open_depth, sizeof open_depth, (off_t)lane + kOpenDepthAt) ==
            sizeof open_depth;
    if (file >= 0) close(file);
    if (files != NULL) closedir(files);
    if (told)
        printf("pid %d steps %ld committed %llu records %llu open %u\n", pid, steps,
               (unsigned long long)committed, (unsigned long long)records, open_depth);
    return told;
}

static int stop_signal(pid_t pid) {
    int status = 0;
    if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status)) return -1;
    return WSTOPSIG(status);
}

static int run_to_stop(pid_t pid) {
    int number = stop_signal(pid);
    while (number != SIGSTOP && number > 0) {
        if (ptrace(PTRACE_CONT, pid, NULL, number == SIGTRAP ? 0 : number) != 0) return 0;
        number = stop_signal(pid);
    }
    return number == SIGSTOP;
}

static int kill_after(long most, char** command) {
    const pid_t pid = fork();
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(kSkipped);
        setenv("LD_PRELOAD", getenv("STEPPER_PRELOAD"), 1);
        execv(command[0], command);
        _exit(127);
    }
    if (!run_to_stop(pid)) {
        int status = 0;
        waitpid(pid, &status, __WALL);
        return kSkipped;
    }
    long steps = 0;
    for (; steps < most; ++steps) {
        if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) != 0) return 3;
        if (stop_signal(pid) != SIGTRAP) break;
    }
    const int told = tell_lane(pid, steps);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, __WALL);
    return told ? 0 : 4;
}

/* Where the shim's code lies in a process. */
static int code_of(pid_t pid, const char* shim, uint64_t* from, uint64_t* to) {
    char path[64], line[4096];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE* const maps = fopen(path, "r");
    int found = 0;
    while (!found && maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        unsigned long long first = 0, last = 0;
        if (strstr(line, "r-xp") != NULL && strstr(line, shim) != NULL &&
            sscanf(line, "%llx-%llx", &first, &last) == 2) {
            *from = first;
            *to = last;
            found = 1;
        }
    }
    if (maps != NULL) fclose(maps);
    return found;
}

static int hold(pid_t tid, const char* shim, const char* out, const char* release) {
    uint64_t from = 0, to = 0;
    if (!code_of(tid, shim, &from, &to)) return 5;
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0) return kSkipped;
    if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0 || stop_signal(tid) < 0) return 3;
    struct user_regs_struct registers;
    for (long inside = 0; inside < 20;) { /* well into a hook, not on its first instruction */
        if (ptrace(PTRACE_SINGLESTEP, tid, NULL, NULL) != 0 || stop_signal(tid) < 0 ||
            ptrace(PTRACE_GETREGS, tid, NULL, &registers) != 0)
            return 3;
        inside = registers.rip >= from && registers.rip < to ? inside + 1 : 0;
    }
    close(open(out, O_CREAT | O_WRONLY, 0600));
    while (access(release, F_OK) != 0) usleep(kPollUs);
    return ptrace(PTRACE_DETACH, tid, NULL, NULL) == 0 ? 0 : 3;
}

int main(int count, char** words) {
    if (count > 3 && strcmp(words[1], "kill") == 0) return kill_after(atol(words[2]), words + 3);
    if (count == 6 && strcmp(words[1], "hold") == 0)
        return hold(atoi(words[2]), words[3], words[4], words[5]);
    return 2;
}
