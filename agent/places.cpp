#include "agent/places.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "agent/attach/file_handle.hpp"

namespace ringside::agent {
namespace {

/// @return errno of what keeps a directory from being written, or from being made; 0: nothing
int what_is_wrong(std::string path) {
    struct stat status {};
    while (::stat(path.c_str(), &status) != 0) {
        const std::size_t slash = path.rfind('/');
        if (errno != ENOENT || slash == std::string::npos) return errno;
        path = slash == 0 ? "/" : path.substr(0, slash);
    }
    if (!S_ISDIR(status.st_mode)) return ENOTDIR;
    return ::access(path.c_str(), W_OK | X_OK) == 0 ? 0 : errno;
}

}  // namespace

std::vector<std::string> unwritable_places(const AgentOptions& options) {
    std::vector<std::pair<std::string, std::string>> places = {
        {"dir", options.engine.root}, {"output", options.engine.output_root}};
    if (const char* home = ::secure_getenv("HOME"); home != nullptr && *home == '/')
        places.emplace_back("home", std::string(home) + "/.ringside");
    std::vector<std::string> unwritable;
    for (const auto& [name, path] : places) {
        const int cause = what_is_wrong(path);
        if (cause == 0) continue;
        std::string& text = unwritable.emplace_back(name);
        text.append(" ").append(path).append(" can't be written: ").append(error_text(cause));
        text.append(
            "; give it to this user, or another place; under systemd, name it with "
            "ReadWritePaths= in a drop-in");
    }
    return unwritable;
}

}  // namespace ringside::agent
