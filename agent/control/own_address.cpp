// The address by which other hosts reach this one.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "agent/attach/file_handle.hpp"
#include "agent/control/rendezvous.hpp"

namespace ringside::agent {
namespace {

/// @return an IP literal; empty where it is none
std::string literal(const sockaddr* address) {
    char text[INET6_ADDRSTRLEN] = {};
    if (address->sa_family == AF_INET) {
        const auto* four = reinterpret_cast<const sockaddr_in*>(address);
        return ::inet_ntop(AF_INET, &four->sin_addr, text, sizeof text) == nullptr ? "" : text;
    }
    if (address->sa_family != AF_INET6) return "";
    const auto* six = reinterpret_cast<const sockaddr_in6*>(address);
    // A link-local one says nothing without its interface.
    if (IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) ||
        ::inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text) == nullptr)
        return "";
    return std::string("[") + text + "]";
}

/// The one that speaks to `host`. Nothing is sent: a datagram socket only looks its way up.
std::string address_toward(const char* host) {
    if (host == nullptr || *host == 0) return "";
    addrinfo hints{};
    hints.ai_socktype = SOCK_DGRAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(host, "9", &hints, &found) != 0) return "";
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
        const FileHandle socket(::socket(each->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        sockaddr_storage own{};
        socklen_t size = sizeof own;
        if (socket && ::connect(socket.get(), each->ai_addr, each->ai_addrlen) == 0 &&
            ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0) {
            std::string text = literal(reinterpret_cast<const sockaddr*>(&own));
            if (!text.empty()) return text;
        }
    }
    return "";
}

std::string first_interface() {
    ifaddrs* all = nullptr;
    if (::getifaddrs(&all) != 0) return "";
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(all, &::freeifaddrs);
    for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
        const bool usable =
            (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_LOOPBACK) == 0;
        if (!usable || each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
        return literal(each->ifa_addr);
    }
    return "";
}

}  // namespace

std::string own_address() {
    if (const char* named = ::secure_getenv("RINGSIDE_ADDRESS"); named != nullptr && *named != 0)
        return named;
    for (const char* launcher : {"SLURM_LAUNCH_NODE_IPADDR", "MASTER_ADDR"}) {
        std::string address = address_toward(::secure_getenv(launcher));
        // Launched from this very host: where the others are, it does not say.
        const bool loopback = address.starts_with("127.") || address == "[::1]";
        if (!address.empty() && !loopback) return address;
    }
    const std::string first = first_interface();
    return first.empty() ? "127.0.0.1" : first;
}

}  // namespace ringside::agent
