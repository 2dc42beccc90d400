// Preloaded into an agent: ends it as kill -9 would, at one call of one function. RINGSIDE_KILL_POINT is "FUNCTION NUMBER WHEN": the
// NUMBER-th call of writev (a dump's chunk), fsync (its end: the file's, then the folder's) or unlink (the capture's note), `before` it,
// `after` it, or, of writev, when `half` of the bytes are written.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int calls_of[3];

/* Whether this call of `function` is to end us, and when. */
static int is_point(const char* function, int* calls, const char* when) {
    char wanted[32] = "", at[32] = "";
    int number = 0;
    const char* point = getenv("RINGSIDE_KILL_POINT");
    if (point == NULL || sscanf(point, "%31s %d %31s", wanted, &number, at) != 3) return 0;
    return strcmp(wanted, function) == 0 && number == *calls && strcmp(at, when) == 0;
}

static void end(void) {
    syscall(SYS_kill, getpid(), SIGKILL);
}

ssize_t writev(int file, const struct iovec* parts, int count) {
    ++calls_of[0];
    if (is_point("writev", &calls_of[0], "before")) end();
    if (is_point("writev", &calls_of[0], "half")) {
        size_t bytes = 0;
        for (int i = 0; i < count; ++i) bytes += parts[i].iov_len;
        size_t left = bytes / 2;
        for (int i = 0; i < count && left > 0; ++i) {
            const size_t now = parts[i].iov_len < left ? parts[i].iov_len : left;
            if (syscall(SYS_write, file, parts[i].iov_base, now) < 0) break;
            left -= now;
        }
        end();
    }
    const ssize_t wrote = syscall(SYS_writev, file, parts, count);
    if (is_point("writev", &calls_of[0], "after")) end();
    return wrote;
}

int fsync(int file) {
    ++calls_of[1];
    if (is_point("fsync", &calls_of[1], "before")) end();
    const int done = (int)syscall(SYS_fsync, file);
    if (is_point("fsync", &calls_of[1], "after")) end();
    return done;
}

int unlink(const char* path) {
    const char* name = strrchr(path, '/');
    if (name != NULL && strcmp(name, "/capture") == 0) ++calls_of[2];
    if (is_point("unlink", &calls_of[2], "before")) end();
    const int done = (int)syscall(SYS_unlink, path);
    if (is_point("unlink", &calls_of[2], "after")) end();
    return done;
}
