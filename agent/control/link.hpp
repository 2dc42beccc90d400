// One DEALER socket to one agent: sends requests, takes verified replies until a deadline. The client is made of it; a leader asks many at
// once (`peer_links`).
#pragma once

#include <zmq.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "agent/control/key.hpp"
#include "agent/control/messages.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

using SteadyTime = std::chrono::steady_clock::time_point;
using Milliseconds = std::chrono::milliseconds;

/// @thread one caller at a time
class Link {
public:
    /// Looks whether anybody listens there, then connects; over tcp it waits until the two have agreed on the key.
    /// @param key  for tcp; may be null for ipc
    /// @errors NoAgent: no socket, or a dead agent's; Refused: another user's socket, no key or another one; Usage: no endpoint
    static schema::Result<Link> connect(zmq::context_t& context, const std::string& endpoint,
                                        const Key* key);

    const std::string& endpoint() const { return endpoint_; }
    zmq::socket_t& socket() { return socket_; }

    /// @return a number for the next request; replies carry it
    std::uint64_t next_id() { return ++last_id_; }
    /// Never blocks: an agent that does not read gets no more than a few requests.
    /// @errors NoAgent: the queue is full; Usage: more than an agent takes
    schema::Result<void> send(const MessageBytes& bytes);
    /// The next message, whatever it answers. Damaged ones are errors, not skipped.
    /// @return nothing where none came until the deadline, or a signal interrupted the wait
    schema::Result<std::optional<fbs::MessageT>> receive(SteadyTime deadline);
    /// Whether somebody still listens at the endpoint; libzmq itself goes on trying in silence.
    schema::Result<void> probe() const;

private:
    Link(zmq::socket_t socket, std::string endpoint)
        : socket_(std::move(socket)), endpoint_(std::move(endpoint)) {}

    zmq::socket_t socket_;
    std::string endpoint_;
    std::uint64_t last_id_ = 0;
};

/// How long a tcp endpoint is tried for.
inline constexpr Milliseconds kTcpProbe{2000};

/// Whether an agent listens at `endpoint`; for callers that have no link.
/// @errors as Link::connect
schema::Result<void> probe_endpoint(const std::string& endpoint,
                                    Milliseconds tcp_limit = kTcpProbe);

}  // namespace ringside::agent
