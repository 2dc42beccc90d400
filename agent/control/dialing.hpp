// What the sockets that ask agents have in common: their bounds, their key, and how it is told that the two sides have agreed on it. Used by `link` (one agent)
// and `peer_links` (many).
#pragma once

#include <zmq.hpp>

#include <chrono>
#include <optional>
#include <string>

#include "agent/control/key.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

/// So long an agent may take to agree on a key.
inline constexpr std::chrono::milliseconds kHandshakeLimit{5000};

/// A socket of bounded queues that is not connected yet.
/// @param key  for tcp; null for ipc
/// @throws zmq::error_t
zmq::socket_t dialing_socket(zmq::context_t& context, zmq::socket_type type, const Key* key);

/// How the handshakes of a socket's connections go: libzmq tries for ever and tells only its monitor.
/// @thread one: the watched socket's
class Handshakes {
public:
    struct Outcome {
        std::string endpoint;  ///< as it was connected to
        bool agreed;
    };

    /// @param watched  not connected yet; outlives this
    /// @throws zmq::error_t
    Handshakes(zmq::context_t& context, zmq::socket_t& watched);
    ~Handshakes();
    Handshakes(const Handshakes&) = delete;
    Handshakes& operator=(const Handshakes&) = delete;

    /// @return nothing where none ended until then
    std::optional<Outcome> next(std::chrono::steady_clock::time_point deadline);

private:
    zmq::socket_t& watched_;
    zmq::socket_t events_;
};

/// NoAgent: it has not said anything within the limit.
schema::Error no_handshake(const std::string& endpoint);
/// Refused: it holds another key, or is no agent.
schema::Error other_key(const std::string& endpoint);

}  // namespace ringside::agent
