#include "agent/control/link.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "agent/control/endpoint.hpp"
#include "agent/control/tcp_probe.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

constexpr int kQueuedMessages = 64;
constexpr int kHandshakeMs = 5000;
constexpr Milliseconds kTcpProbe{2000};

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

/// How a connection's handshake goes: libzmq tries for ever and tells only its monitor.
class Handshake {
public:
    Handshake(zmq::context_t& context, zmq::socket_t& watched)
        : watched_(watched), events_(context, zmq::socket_type::pair) {
        static std::atomic<std::uint64_t> count{0};
        const std::string name = "inproc://handshake-" + std::to_string(++count);
        ::zmq_socket_monitor(watched_.handle(), name.c_str(),
                             ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                                 ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                                 ZMQ_EVENT_HANDSHAKE_FAILED_AUTH);
        events_.set(zmq::sockopt::linger, 0);
        events_.connect(name);
    }
    ~Handshake() { ::zmq_socket_monitor(watched_.handle(), nullptr, 0); }
    Handshake(const Handshake&) = delete;
    Handshake& operator=(const Handshake&) = delete;

    /// @errors Refused: another key, or no agent; NoAgent: no answer
    schema::Result<void> wait(const std::string& endpoint) {
        const std::string action = "agree on a key with the agent at " + endpoint + ": ";
        zmq::pollitem_t item{events_.handle(), 0, ZMQ_POLLIN, 0};
        zmq::message_t event;
        if (zmq::poll(&item, 1, Milliseconds(kHandshakeMs)) == 0 || !events_.recv(event) ||
            event.size() < sizeof(std::uint16_t))
            return Error{ErrorCode::kNoAgent, action + "no answer; is it stopped, or no agent?"};
        std::uint16_t what = 0;
        std::memcpy(&what, event.data(), sizeof what);
        if (what == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) return {};
        return Error{ErrorCode::kRefused,
                     action +
                         "it holds another key, or is no agent; give both the same file "
                         "(`ringside keygen`, --key FILE)"};
    }

private:
    zmq::socket_t& watched_;
    zmq::socket_t events_;
};

}  // namespace

schema::Result<void> probe_endpoint(const std::string& endpoint) {
    if (is_tcp(endpoint)) {
        auto address = tcp_address(endpoint);
        return address ? probe_tcp(*address, kTcpProbe) : schema::Result<void>(address.error());
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
        zmq::socket_t socket(context, zmq::socket_type::dealer);
        socket.set(zmq::sockopt::linger, 0);
        socket.set(zmq::sockopt::sndhwm, kQueuedMessages);
        socket.set(zmq::sockopt::rcvhwm, kQueuedMessages);
        socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(kMostReplyBytes));
        socket.set(zmq::sockopt::handshake_ivl, kHandshakeMs);
        if (is_tcp(endpoint)) {
            socket.set(zmq::sockopt::ipv6, true);
            socket.set(zmq::sockopt::curve_serverkey, key->public_half);
            socket.set(zmq::sockopt::curve_publickey, key->public_half);
            socket.set(zmq::sockopt::curve_secretkey, key->secret_half);
            Handshake handshake(context, socket);
            socket.connect(endpoint);
            if (auto agreed = handshake.wait(endpoint); !agreed) return agreed.error();
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
