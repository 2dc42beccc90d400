#include "agent/control/link.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "agent/control/dialing.hpp"
#include "agent/control/endpoint.hpp"
#include "agent/control/tcp_probe.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

Error nobody(const std::string& endpoint, int cause) {
    const std::string action = "reach the agent at " + endpoint + ": ";
    if (cause == ENOENT) {
        return {ErrorCode::kNoAgent, action +
                                         "no such socket; start one with `ringside agent` (same "
                                         "--dir and --job as the job), or "
                                         "name its endpoint with --hosts"};
    }
    if (cause == ECONNREFUSED) {
        return {ErrorCode::kNoAgent, action +
                                         "the socket is there but nobody listens: its agent died; "
                                         "start it again with `ringside agent`"};
    }
    if (cause == EACCES || cause == EPERM) {
        return {ErrorCode::kRefused,
                action + std::strerror(cause) +
                    "; agents answer their own user only: ask as the job's user"};
    }
    return {ErrorCode::kNoAgent, action + std::strerror(cause)};
}

}  // namespace

schema::Result<void> probe_endpoint(const std::string& endpoint, Milliseconds tcp_limit) {
    if (is_tcp(endpoint)) {
        auto address = tcp_address(endpoint);
        return address ? probe_tcp(*address, tcp_limit) : schema::Result<void>(address.error());
    }
    auto path = socket_path(endpoint);
    if (!path) return path.error();
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return Error{ErrorCode::kInternal, std::string("make a socket: ") + std::strerror(errno) +
                                               "; raise the limit of open files"};
    }
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path->c_str(), path->size() + 1);
    const int result = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    const int cause = errno;
    ::close(fd);
    // EAGAIN: its queue of connections is full, so somebody holds the socket.
    if (result == 0 || cause == EAGAIN || cause == EINPROGRESS) return {};
    return nobody(endpoint, cause);
}

schema::Result<Link> Link::connect(zmq::context_t& context, const std::string& endpoint,
                                   const Key* key) {
    if (is_tcp(endpoint) && key == nullptr) return key_missing(endpoint);
    if (auto listening = probe_endpoint(endpoint); !listening) return listening.error();
    try {
        const bool keyed = is_tcp(endpoint);
        zmq::socket_t socket =
            dialing_socket(context, zmq::socket_type::dealer, keyed ? key : nullptr);
        if (keyed) {
            Handshakes handshakes(context, socket);
            socket.connect(endpoint);
            const auto outcome =
                handshakes.next(std::chrono::steady_clock::now() + kHandshakeLimit);
            if (!outcome) return no_handshake(endpoint);
            if (!outcome->agreed) return other_key(endpoint);
        } else {
            socket.connect(endpoint);
        }
        return Link(std::move(socket), endpoint);
    } catch (const zmq::error_t& error) {
        return Error{ErrorCode::kInternal, "connect to " + endpoint + ": " + error.what()};
    }
}

schema::Result<void> Link::probe() const {
    return probe_endpoint(endpoint_);
}

schema::Result<void> Link::send(const MessageBytes& bytes) {
    // The agent would end the connection without a word.
    if (bytes.size() > kMostRequestBytes)
        return Error{ErrorCode::kUsage, "send " + std::to_string(bytes.size()) + " bytes to " +
                                            endpoint_ + ": an agent takes " +
                                            std::to_string(kMostRequestBytes) +
                                            " at most; name fewer hosts or processes"};
    try {
        if (socket_.send(zmq::buffer(bytes), zmq::send_flags::dontwait)) return {};
    } catch (const zmq::error_t& error) {
        return Error{ErrorCode::kInternal, "send to " + endpoint_ + ": " + error.what()};
    }
    return Error{ErrorCode::kNoAgent,
                 "send to " + endpoint_ + ": the agent takes nothing more; is it stopped?"};
}

schema::Result<std::optional<fbs::MessageT>> Link::receive(SteadyTime deadline) {
    using Reply = std::optional<fbs::MessageT>;
    try {
        while (true) {
            zmq::message_t frame;
            if (socket_.recv(frame, zmq::recv_flags::dontwait)) {
                bool parts = false;
                while (frame.more()) {
                    parts = true;
                    (void)socket_.recv(frame);
                }
                if (parts)
                    return Error{ErrorCode::kInput,
                                 "read a reply of " + endpoint_ +
                                     ": it has several parts; is that an agent?"};
                auto message =
                    unpack_message({static_cast<const std::uint8_t*>(frame.data()), frame.size()});
                if (!message) return message.error();
                return Reply(std::move(*message));
            }
            const auto left = std::chrono::duration_cast<Milliseconds>(
                deadline - std::chrono::steady_clock::now());
            if (left.count() < 0) return Reply();
            // Rounded up: the last part of a millisecond must not become a busy loop.
            zmq::pollitem_t item{socket_.handle(), 0, ZMQ_POLLIN, 0};
            if (zmq::poll(&item, 1, left + Milliseconds(1)) == 0) return Reply();
        }
    } catch (const zmq::error_t& error) {
        if (error.num() == EINTR) return Reply();
        return Error{ErrorCode::kInternal, "read from " + endpoint_ + ": " + error.what()};
    }
}

}  // namespace ringside::agent
