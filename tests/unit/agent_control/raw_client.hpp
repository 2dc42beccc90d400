// A client that speaks ZMTP (https://rfc.zeromq.org/spec/23/) itself, and so may say what libzmq would not: parts without an end, half a frame, nothing.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ringside::agent::test {

class RawClient {
public:
    /// @param endpoint  ipc
    explicit RawClient(const std::string& endpoint)
        : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, endpoint.c_str() + 6, sizeof address.sun_path - 1);
        connected_ =
            ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    }
    ~RawClient() { ::close(fd_); }
    RawClient(RawClient&& other) noexcept
        : fd_(std::exchange(other.fd_, -1)), connected_(other.connected_) {}

    int fd() const { return fd_; }
    bool connected() const { return connected_; }
    /// @return false: the other side has closed
    bool send(const std::string& bytes) const {
        std::size_t sent = 0;
        while (sent < bytes.size()) {
            const ssize_t n = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
            if (n <= 0) return false;
            sent += static_cast<std::size_t>(n);
        }
        return true;
    }
    /// @return exactly so many; none: the other side has closed
    std::optional<std::vector<unsigned char>> receive(std::size_t count) const {
        std::vector<unsigned char> bytes(count);
        if (::recv(fd_, bytes.data(), count, MSG_WAITALL) != static_cast<ssize_t>(count))
            return std::nullopt;
        return bytes;
    }
    /// The greeting and READY of a DEALER without security.
    bool greet() const {
        using namespace std::string_literals;
        const std::string greeting = "\xff"s + std::string(8, 0) + "\x7f\x03"s + "\0"s + "NULL"s +
                                     std::string(16, 0) + std::string(32, 0);
        const std::string ready =
            "\x05READY\x0bSocket-Type\0\0\0\x06"s + "DEALER\x08Identity\0\0\0\0"s;
        // Nothing else may come before the other side is ready, too.
        return send(greeting + "\x04"s + static_cast<char>(ready.size()) + ready) &&
               receive(greeting.size() + 1) &&
               receive(receive(1).value_or(std::vector<unsigned char>{0})[0]);
    }

private:
    int fd_;
    bool connected_ = false;
};

}  // namespace ringside::agent::test
