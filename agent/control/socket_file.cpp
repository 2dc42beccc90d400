#include "agent/control/socket_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "agent/control/endpoint.hpp"
#include "agent/control/link.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

std::string bind_action(const std::string& endpoint) {
    return "bind " + endpoint + ": ";
}

schema::Result<void> check_directory(const std::string& endpoint, const std::string& directory) {
    if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
        return Error{ErrorCode::kUsage, bind_action(endpoint) + "make its directory " + directory +
                                            ": " + std::strerror(errno) +
                                            "; choose another --endpoint"};
    }
    struct stat status {};
    if (::stat(directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
        return Error{ErrorCode::kUsage, bind_action(endpoint) + directory +
                                            " is no directory; choose another --endpoint"};
    }
    if (status.st_uid != ::getuid() || (status.st_mode & 022) != 0) {
        return Error{ErrorCode::kRefused,
                     bind_action(endpoint) + "others may write its directory " + directory +
                         " and put a socket of theirs there; use one of your own with mode 0700"};
    }
    return {};
}

/// Makes way for a new socket: nothing there, or a dead agent's.
schema::Result<void> clear_stale(const std::string& endpoint, const std::string& path) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) {
        if (errno == ENOENT) return {};
        return Error{ErrorCode::kUsage,
                     bind_action(endpoint) + std::strerror(errno) + "; choose another --endpoint"};
    }
    if (!S_ISSOCK(status.st_mode) || status.st_uid != ::getuid()) {
        return Error{
            ErrorCode::kRefused,
            bind_action(endpoint) + path +
                " exists and is no socket of yours; remove it or choose another --endpoint"};
    }
    if (probe_endpoint(endpoint)) {
        return Error{ErrorCode::kRefused,
                     bind_action(endpoint) +
                         "another agent listens there; stop it or choose another --endpoint"};
    }
    if (::unlink(path.c_str()) != 0) {
        return Error{ErrorCode::kInternal,
                     bind_action(endpoint) + "remove the stale socket: " + std::strerror(errno)};
    }
    return {};
}

/// It may be so already, where the bind that came after it failed.
void unbind(zmq::socket_t& socket, const std::string& endpoint) {
    if (::zmq_unbind(socket.handle(), endpoint.c_str()) != 0 && ::zmq_errno() != ENOENT)
        throw zmq::error_t();
}

}  // namespace

schema::Result<std::string> bind_socket_file(zmq::socket_t& socket, const std::string& endpoint) {
    auto path = socket_path(endpoint);
    if (!path) return path.error();
    const std::size_t slash = path->rfind('/');
    const std::string directory = slash == 0 ? "/" : path->substr(0, slash);
    if (auto checked = check_directory(endpoint, directory); !checked) return checked.error();
    if (auto cleared = clear_stale(endpoint, *path); !cleared) return cleared.error();
    const mode_t mask = ::umask(0177);
    std::string failure;
    try {
        socket.bind(endpoint);
    } catch (const zmq::error_t& error) {
        failure = error.what();
    }
    ::umask(mask);
    if (!failure.empty()) {
        return Error{ErrorCode::kInternal,
                     bind_action(endpoint) + failure + "; choose another --endpoint"};
    }
    return path;
}

schema::Result<void> bind_again(zmq::socket_t& socket, const std::string& endpoint) {
    auto path = socket_path(endpoint);
    if (!path) return path.error();
    if (auto checked = check_directory(endpoint, path->substr(0, path->rfind('/'))); !checked)
        return checked.error();
    if (auto cleared = clear_stale(endpoint, *path); !cleared) return cleared.error();
    try {
        unbind(socket, endpoint);
        socket.bind(endpoint);
    } catch (const zmq::error_t& error) {
        return Error{ErrorCode::kInternal,
                     bind_action(endpoint) + error.what() + "; restart the agent"};
    }
    // Not by umask: other threads write files by now. Until here the directory, which is ours alone, is what keeps others out.
    if (::chmod(path->c_str(), S_IRUSR | S_IWUSR) != 0) {
        return Error{ErrorCode::kInternal, bind_action(endpoint) + std::strerror(errno)};
    }
    return {};
}

}  // namespace ringside::agent
