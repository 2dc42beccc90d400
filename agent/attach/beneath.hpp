// Files beneath a root of ours, whatever a request calls them: neither ".." nor a link leads out of it. For what is written (dumps) and
// what is read back.
#pragma once

#include <sys/types.h>

#include <string>

#include "agent/attach/file_handle.hpp"

namespace ringside::agent {

/// Opens `path` beneath the directory `root`, following no link in it: by openat2(2), or component by component where the kernel has none.
/// @param path   relative: components joined by '/', none of them empty, "." or ".."
/// @param flags  as for open(2); O_CLOEXEC is added
/// @return an invalid handle and errno: EXDEV where `path` would leave the root, ELOOP or ENOTDIR where a link is in the way
/// @thread thread-safe
FileHandle open_beneath(int root, const std::string& path, int flags, mode_t mode = 0);

/// The same without openat2(2).
FileHandle open_by_components(int root, const std::string& path, int flags, mode_t mode = 0);

}  // namespace ringside::agent
