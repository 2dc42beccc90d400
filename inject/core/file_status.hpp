// stat() and fstat() by number: the C library's own are new names (2.33) for what were macros over other names before. On x86-64 the kernel's
// structure is the C library's.
#pragma once

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ringside::inject {

inline bool status_of(int fd, struct stat& status) {
    return syscall(SYS_fstat, fd, &status) == 0;
}

inline bool status_of(const char* path, struct stat& status) {
    return syscall(SYS_stat, path, &status) == 0;
}

}  // namespace ringside::inject
