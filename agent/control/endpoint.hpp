// Where an agent is reached and where things lie by default: one function each, so that shim, agent and command never disagree. Public:
// the command uses it too.
#pragma once

#include <string>
#include <string_view>

#include "schema/result.hpp"

namespace ringside::agent {

/// RINGSIDE_DIR, else /dev/shm/ringside-<uid>.
std::string default_root();
/// RINGSIDE_JOB, else SLURM_JOB_ID, else "default".
std::string default_job();
/// RINGSIDE_NODE, else the host's name.
std::string default_node();
/// /var/tmp/ringside-<uid>.
std::string default_output_root();
/// `ipc://<root>/<job>/agent.sock`; where that path is too long for a socket, `ipc:///tmp/ringside-<uid>/<hash of both>.sock`.
std::string default_endpoint(const std::string& root, const std::string& job);

/// A socket's path may have this many bytes (sun_path, NUL not counted).
inline constexpr std::size_t kMostSocketPathBytes = 107;

/// Takes `ipc://<absolute path>` apart.
/// @return the path
/// @errors Usage: anything else, a path too long or not absolute
schema::Result<std::string> socket_path(std::string_view endpoint);

/// `tcp://host:port`, the host a name, an IPv4 address, or an IPv6 address in brackets.
struct TcpAddress {
    std::string host;  ///< without brackets
    std::string port;  ///< 1 to 65535
};
inline bool is_tcp(std::string_view endpoint) {
    return endpoint.starts_with("tcp://");
}
/// @errors Usage
schema::Result<TcpAddress> tcp_address(std::string_view endpoint);

/// Whether `endpoint` is one of the two.
/// @errors Usage
schema::Result<void> check_endpoint(std::string_view endpoint);

/// A name that becomes a file or folder beneath a root of ours: of [A-Za-z0-9._-], not "." nor "..", 128 characters at most.
/// @param what  how an error calls it: "--name", "job"
/// @errors Usage
schema::Result<void> check_name(std::string_view what, std::string_view name);

}  // namespace ringside::agent
