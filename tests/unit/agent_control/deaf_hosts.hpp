// Hosts that answer nobody who connects to them.
#pragma once

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace ringside::agent::test {

/// Connections wait for ever: the listener's queue is full.
class DeafHosts {
public:
    explicit DeafHosts(int count) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        socklen_t size = sizeof address;
        auto* const any = reinterpret_cast<sockaddr*>(&address);
        REQUIRE(::bind(listener_, any, size) == 0);
        REQUIRE(::listen(listener_, 0) == 0);
        REQUIRE(::getsockname(listener_, any, &size) == 0);
        for (int i = 0; i < 4; ++i) {
            waiting_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
            (void)!::connect(waiting_.back(), any, size);
        }
        for (int host = 0; host < count; ++host)
            endpoints_.push_back("tcp://127.0." + std::to_string(host / 250) + "." +
                                 std::to_string(1 + host % 250) + ":" +
                                 std::to_string(ntohs(address.sin_port)));
    }
    ~DeafHosts() {
        for (const int fd : waiting_) ::close(fd);
        ::close(listener_);
    }
    DeafHosts(const DeafHosts&) = delete;
    DeafHosts& operator=(const DeafHosts&) = delete;

    const std::vector<std::string>& endpoints() const { return endpoints_; }

private:
    int listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    std::vector<int> waiting_;
    std::vector<std::string> endpoints_;
};

}  // namespace ringside::agent::test
