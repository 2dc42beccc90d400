#include "agent/attach/file_handle.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

namespace ringside::agent {

std::string error_text(int error) {
    return std::generic_category().message(error);
}

bool is_private_directory(int directory) {
    struct stat status {};
    if (::fstat(directory, &status) != 0) return false;
    constexpr mode_t kOthersMayWrite = S_IWGRP | S_IWOTH;
    if (status.st_uid == ::geteuid() && (status.st_mode & kOthersMayWrite) == 0) return true;
    errno = EPERM;
    return false;
}

FileHandle open_private_directory(int parent, const char* name, bool make) {
    constexpr mode_t kPrivate = 0700;
    if (make && ::mkdirat(parent, name, kPrivate) != 0 && errno != EEXIST) return FileHandle();
    FileHandle directory(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (directory && !is_private_directory(directory.get())) return FileHandle();
    return directory;
}

bool is_path_component(const std::string& text) {
    constexpr std::size_t kMost = 200;
    return !text.empty() && text.size() <= kMost && text != "." && text != ".." &&
           text.find('/') == std::string::npos && text.find('\0') == std::string::npos;
}

}  // namespace ringside::agent
