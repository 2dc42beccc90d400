#include "agent/control/endpoint.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>

#include "schema/request_id.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

/// Some slack below kMostSocketPathBytes: libzmq and humans append to it.
constexpr std::size_t kLongPathBytes = 100;
constexpr std::size_t kMostNameBytes = 128;

/// @return the variable, or empty; never for a privileged program
std::string environment(const char* name) {
    const char* value = ::secure_getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

std::string uid_text() {
    return std::to_string(::getuid());
}

bool name_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

Error bad_name(std::string_view what, std::string_view name, const char* cause) {
    std::string shown(name.substr(0, kMostNameBytes));
    for (char& c : shown) {
        if (c < ' ' || c == 0x7f) c = '?';
    }
    return {ErrorCode::kUsage, std::string(what) + " '" + shown + "': " + cause +
                                   "; use letters, digits, '.', '_' and '-'"};
}

}  // namespace

std::string default_root() {
    std::string root = environment("RINGSIDE_DIR");
    return root.empty() ? "/dev/shm/ringside-" + uid_text() : root;
}

std::string default_job() {
    for (const char* name : {"RINGSIDE_JOB", "SLURM_JOB_ID"}) {
        std::string job = environment(name);
        if (!job.empty()) return job;
    }
    return "default";
}

std::string default_node() {
    std::string node = environment("RINGSIDE_NODE");
    if (!node.empty()) return node;
    char host[256] = {};
    if (::gethostname(host, sizeof host - 1) != 0 || host[0] == 0) return "node";
    return host;
}

std::string default_output_root() {
    return "/var/tmp/ringside-" + uid_text();
}

std::string default_endpoint(const std::string& root, const std::string& job) {
    const std::string directory = root + "/" + job;
    const std::string path = directory + "/agent.sock";
    if (path.size() <= kLongPathBytes) return "ipc://" + path;
    char hash[17] = {};
    schema::write_hex(hash, schema::hash_bytes(directory.data(), directory.size()), 16);
    return "ipc:///tmp/ringside-" + uid_text() + "/" + hash + ".sock";
}

schema::Result<std::string> socket_path(std::string_view endpoint) {
    const std::string shown(endpoint.substr(0, 256));
    if (!endpoint.starts_with("ipc:///") || endpoint.size() <= 7) {
        return Error{ErrorCode::kUsage,
                     "endpoint '" + shown +
                         "' is neither ipc:// and an absolute path nor tcp://HOST:PORT; write "
                         "ipc:///path/to/agent.sock"};
    }
    const std::string_view path = endpoint.substr(6);
    if (path.size() > kMostSocketPathBytes) {
        return Error{ErrorCode::kUsage,
                     "endpoint " + shown + ": its path has " + std::to_string(path.size()) +
                         " bytes, a socket's has " + std::to_string(kMostSocketPathBytes) +
                         " at most; choose a shorter one"};
    }
    if (path.find('\0') != std::string_view::npos)
        return Error{ErrorCode::kUsage, "endpoint " + shown + " contains a NUL; write a path"};
    return std::string(path);
}

schema::Result<TcpAddress> tcp_address(std::string_view endpoint) {
    const Error wrong{ErrorCode::kUsage, "endpoint '" + std::string(endpoint.substr(0, 256)) +
                                             "' is not tcp://HOST:PORT, with a port of 1 to 65535"};
    if (!is_tcp(endpoint)) return wrong;
    std::string_view rest = endpoint.substr(6);
    const std::size_t colon = rest.rfind(':');
    if (colon == std::string_view::npos || colon == 0) return wrong;
    const std::string_view port = rest.substr(colon + 1);
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (error != std::errc() || end != port.data() + port.size() || number == 0 || number > 65535)
        return wrong;
    std::string_view host = rest.substr(0, colon);
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (bracketed) host = host.substr(1, host.size() - 2);
    const auto fits = [&](char c) { return name_character(c) || (bracketed && c == ':'); };
    if (host.size() > kMostNameBytes * 2 || !std::all_of(host.begin(), host.end(), fits))
        return wrong;
    return TcpAddress{std::string(host), std::string(port)};
}

schema::Result<void> check_endpoint(std::string_view endpoint) {
    if (is_tcp(endpoint)) {
        auto address = tcp_address(endpoint);
        return address ? schema::Result<void>() : schema::Result<void>(address.error());
    }
    auto path = socket_path(endpoint);
    return path ? schema::Result<void>() : schema::Result<void>(path.error());
}

schema::Result<void> check_name(std::string_view what, std::string_view name) {
    if (name.empty()) return bad_name(what, name, "is empty");
    if (name == "." || name == "..") return bad_name(what, name, "is no name of its own");
    if (name.size() > kMostNameBytes) return bad_name(what, name, "is longer than 128 characters");
    if (!std::all_of(name.begin(), name.end(), name_character))
        return bad_name(what, name, "has other characters in it");
    return {};
}

}  // namespace ringside::agent
