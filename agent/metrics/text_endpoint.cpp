#include "agent/metrics/text_endpoint.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/control/endpoint.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostVisitors = 16;  ///< then the oldest goes
constexpr std::size_t kMostRequestBytes = 4096;
constexpr std::chrono::seconds kPatience{
    2};  ///< with a visitor that does not ask, or does not read
constexpr std::string_view kHeadEnd = "\r\n\r\n";

struct SocketAddress {
    sockaddr_storage bytes{};
    socklen_t size = 0;
};

Error refused(const std::string& address, const std::string& why) {
    return {ErrorCode::kRefused, "metrics at " + address + ": " + why};
}

schema::Result<SocketAddress> loopback(const std::string& address) {
    auto parts = tcp_address("tcp://" + address);
    if (!parts) {
        return Error{ErrorCode::kUsage,
                     "metrics at '" + address + "': write 127.0.0.1:PORT or [::1]:PORT"};
    }
    std::uint16_t port = 0;
    std::from_chars(parts->port.data(), parts->port.data() + parts->port.size(), port);
    SocketAddress socket;
    in_addr four{};
    in6_addr six{};
    if (::inet_pton(AF_INET, parts->host.c_str(), &four) == 1 &&
        ::ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET) {
        const sockaddr_in name{AF_INET, ::htons(port), four, {}};
        socket.size = sizeof name;
        std::memcpy(&socket.bytes, &name, sizeof name);
        return socket;
    }
    if (::inet_pton(AF_INET6, parts->host.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six)) {
        const sockaddr_in6 name{AF_INET6, ::htons(port), 0, six, 0};
        socket.size = sizeof name;
        std::memcpy(&socket.bytes, &name, sizeof name);
        return socket;
    }
    return refused(address,
                   parts->host +
                       " is no loopback address, and whoever reaches it could read them "
                       "unasked; write 127.0.0.1:PORT and let a proxy of yours go further");
}

struct Visitor {
    FileHandle socket;
    Clock::time_point since;
    std::string request;
};

std::string answer_to(std::string_view request, const std::function<std::string()>& text) {
    const auto reply = [](const char* status, const std::string& body) {
        return std::string("HTTP/1.1 ") + status +
               "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: " +
               std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body;
    };
    if (request.starts_with("GET /metrics ") || request.starts_with("GET /metrics?"))
        return reply("200 OK", text());
    return request.starts_with("GET ") ? reply("404 Not Found", "/metrics is all there is\n")
                                       : reply("405 Method Not Allowed", "GET alone\n");
}

void send_all(int socket, std::string_view bytes) {
    const auto deadline = Clock::now() + kPatience;
    while (!bytes.empty()) {
        const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(sent));
            continue;
        }
        pollfd writable{socket, POLLOUT, 0};
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        if ((errno != EAGAIN && errno != EINTR) || left.count() <= 0 ||
            ::poll(&writable, 1, static_cast<int>(left.count())) <= 0)
            return;
    }
}

/// @return whether we are done with it
bool read_from(Visitor& visitor, const std::function<std::string()>& text) {
    std::array<char, 1024> part;
    const ssize_t size = ::recv(visitor.socket.get(), part.data(), part.size(), 0);
    if (size < 0) return errno != EAGAIN && errno != EINTR;
    visitor.request.append(part.data(), static_cast<std::size_t>(size));
    const bool whole = visitor.request.find(kHeadEnd) != std::string::npos;
    if (whole) send_all(visitor.socket.get(), answer_to(visitor.request, text));
    return whole || size == 0 || visitor.request.size() > kMostRequestBytes;
}

}  // namespace

schema::Result<void> TextEndpoint::check(const std::string& address) {
    const auto name = loopback(address);
    return name ? schema::Result<void>() : name.error();
}

schema::Result<TextEndpoint> TextEndpoint::listen(const std::string& address) {
    auto name = loopback(address);
    if (!name) return name.error();
    FileHandle socket(
        ::socket(name->bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int yes = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&name->bytes), name->size) != 0 ||
        ::listen(socket.get(), kMostVisitors) != 0)
        return refused(address, error_text(errno) + "; choose another port");
    return TextEndpoint(std::move(socket));
}

void TextEndpoint::serve(const std::function<std::string()>& text, int stop_fd) const {
    constexpr std::size_t kOwn = 2;
    std::vector<Visitor> visitors;
    for (;;) {
        std::vector<pollfd> waiting = {{socket_.get(), POLLIN, 0}, {stop_fd, POLLIN, 0}};
        for (const Visitor& visitor : visitors)
            waiting.push_back({visitor.socket.get(), POLLIN, 0});
        const auto pause = std::chrono::duration_cast<std::chrono::milliseconds>(kPatience);
        ::poll(waiting.data(), waiting.size(),
               visitors.empty() ? -1 : static_cast<int>(pause.count()));
        if (waiting[1].revents != 0) return;
        std::vector<Visitor> stay;
        for (std::size_t i = 0; i < visitors.size(); ++i) {
            const bool done = waiting[kOwn + i].revents != 0
                                  ? read_from(visitors[i], text)
                                  : Clock::now() - visitors[i].since > kPatience;
            if (!done) stay.push_back(std::move(visitors[i]));
        }
        visitors = std::move(stay);
        if (waiting[0].revents == 0) continue;
        FileHandle come(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!come) continue;
        if (visitors.size() == kMostVisitors) visitors.erase(visitors.begin());
        visitors.push_back({std::move(come), Clock::now(), {}});
    }
}

}  // namespace ringside::agent
