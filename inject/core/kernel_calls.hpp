// System calls by number, as the C library's functions of these names are but for one thing: those are cancellation points. NVTX, ITT, MPI, our own
// API, fork() and dlsym() are none without us: a thread of the job that somebody has cancelled goes on in them, perhaps with a lock of the job's, to
// where it wants to end. Called by all in here that reads files or waits; tests/lint/shim.py refuses the C library's own.
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>

namespace ringside::inject {

// Results and errno are the C library's.

/// openat()
inline int open_at(int directory, const char* path, int flags, mode_t mode = 0) {
    return static_cast<int>(syscall(SYS_openat, directory, path, flags, mode));
}

/// open() of what is there
inline int open_file(const char* path, int flags) {
    return open_at(AT_FDCWD, path, flags);
}

/// close()
inline void close_file(int fd) {
    syscall(SYS_close, fd);
}

/// read()
inline ssize_t read_file(int fd, void* out, std::size_t bytes) {
    return syscall(SYS_read, fd, out, bytes);
}

/// pread()
inline ssize_t read_file_at(int fd, void* out, std::size_t bytes, off_t at) {
    return syscall(SYS_pread64, fd, out, bytes, at);
}

/// write()
inline ssize_t write_file(int fd, const void* from, std::size_t bytes) {
    return syscall(SYS_write, fd, from, bytes);
}

/// pwrite()
inline ssize_t write_file_at(int fd, const void* from, std::size_t bytes, off_t at) {
    return syscall(SYS_pwrite64, fd, from, bytes, at);
}

/// fcntl() of a lock
inline int control_lock(int fd, int command, struct flock* lock) {
    return static_cast<int>(syscall(SYS_fcntl, fd, command, lock));
}

/// nanosleep()
inline int sleep_for(const timespec& time) {
    return static_cast<int>(syscall(SYS_nanosleep, &time, nullptr));
}

}  // namespace ringside::inject
