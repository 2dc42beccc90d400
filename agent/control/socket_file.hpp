// The file of an ipc endpoint: in a directory that only its owner may write, taken over only from a dead agent. libzmq itself would
// unlink whatever lies there, and steal a living agent's socket.
#pragma once

#include <string>

#include <zmq.hpp>

#include "schema/result.hpp"

namespace ringside::agent {

/// Binds `socket` to an ipc endpoint; the file has mode 0600. Makes the directory (0700) where it is missing.
/// The caller holds its job directory's lock, so that nobody else takes over a stale socket at the same time.
/// @return the socket file's path
/// @errors Refused: tcp, a living agent's socket, something that is no socket of ours, a directory that others may write;
///         Usage: no endpoint, or its directory can't be made
/// @thread main thread, before others write files: it changes the umask for the length of the call
schema::Result<std::string> bind_socket_file(zmq::socket_t& socket, const std::string& endpoint);

/// Binds `socket` once more where the file of its endpoint has been removed: clients find it by that name.
/// @errors as bind_socket_file()
/// @thread the socket's own
schema::Result<void> bind_again(zmq::socket_t& socket, const std::string& endpoint);

}  // namespace ringside::agent
