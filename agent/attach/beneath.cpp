#include "agent/attach/beneath.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>

namespace ringside::agent {
namespace {

bool stays_inside(const std::string& path) {
    for (std::size_t at = 0; at <= path.size();) {
        const std::size_t slash = std::min(path.find('/', at), path.size());
        if (!is_path_component(path.substr(at, slash - at))) return false;
        at = slash + 1;
    }
    return true;
}

}  // namespace

FileHandle open_by_components(int root, const std::string& path, int flags, mode_t mode) {
    if (!stays_inside(path)) {
        errno = EXDEV;
        return FileHandle();
    }
    FileHandle directory;
    int parent = root;
    std::size_t at = 0;
    for (std::size_t slash = 0; (slash = path.find('/', at)) != std::string::npos; at = slash + 1) {
        directory = FileHandle(::openat(parent, path.substr(at, slash - at).c_str(),
                                        O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (!directory) return directory;
        parent = directory.get();
    }
    return FileHandle(::openat(parent, path.c_str() + at, flags | O_NOFOLLOW | O_CLOEXEC, mode));
}

FileHandle open_beneath(int root, const std::string& path, int flags, mode_t mode) {
    if (!stays_inside(path)) {
        errno = EXDEV;
        return FileHandle();
    }
    open_how how{};
    how.flags = static_cast<unsigned>(flags | O_NOFOLLOW | O_CLOEXEC);
    how.mode = mode;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    const long opened = ::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how);
    // Linux before 5.6; EPERM where a container's filter doesn't know it.
    if (opened < 0 && (errno == ENOSYS || errno == EPERM))
        return open_by_components(root, path, flags, mode);
    return FileHandle(static_cast<int>(opened));
}

}  // namespace ringside::agent
