#include "agent/control/tcp_probe.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "agent/attach/file_handle.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;
using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// @return 0, or why not (an errno)
int try_one(const addrinfo& address, std::chrono::milliseconds limit) {
    const FileHandle socket(
        ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return errno;
    if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) return 0;
    if (errno != EINPROGRESS) return errno;
    pollfd item{socket.get(), POLLOUT, 0};
    if (::poll(&item, 1, static_cast<int>(limit.count())) <= 0) return ETIMEDOUT;
    int cause = 0;
    socklen_t size = sizeof cause;
    return ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &cause, &size) == 0 ? cause : errno;
}

const char* advice(int cause) {
    if (cause == ECONNREFUSED)
        return "; start one there with `ringside agent --endpoint tcp://...`, or mend the port";
    return "; is the host up, and the port open between here and there?";
}

}  // namespace

schema::Result<void> probe_tcp(const TcpAddress& address, std::chrono::milliseconds limit) {
    const std::string action =
        "reach the agent at tcp://" + address.host + ":" + address.port + ": ";
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int failed = ::getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found);
    if (failed != 0)
        return Error{ErrorCode::kNoAgent,
                     action + ::gai_strerror(failed) + "; mend the host's name"};
    const Addresses addresses(found, &::freeaddrinfo);
    int cause = 0;
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
        cause = try_one(*each, limit);
        if (cause == 0) return {};
    }
    return Error{ErrorCode::kNoAgent, action + std::strerror(cause) + advice(cause)};
}

}  // namespace ringside::agent
