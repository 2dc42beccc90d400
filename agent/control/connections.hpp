// Who is connected to an agent's server, and what each of them may use of it. libzmq bounds a frame and a queue of whole messages; it bounds neither how many
// connect, nor how often they ask, nor the parts of a message whose last one never comes. That is done here: the server's loop tells of each message that it
// takes, libzmq's monitor of connections that come and go, and what libzmq reads passes through our recv().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include <zmq.hpp>

#include "agent/control/messages.hpp"

namespace ringside::agent {

/// Where one more comes, one of the others is closed: of those that have never asked for anything, else of all but the one that waits for its trace, the one that has been silent
/// for longest.
inline constexpr std::size_t kMostConnections = 128;
/// Requests that a connection may have a second, and as many at once as gather in two.
inline constexpr double kMostRequestsPerSecond = 4000;
inline constexpr double kMostRequestsAtOnce = 8000;
/// What may be read of a connection before a whole message of it has been taken; what lies so of all together, and of each where that is exceeded. Bytes that libzmq
/// has not read straight into a long frame count fourfold: a part of no bytes is 2 of them, and 64 of libzmq's memory.
inline constexpr std::int64_t kMostUnreadBytes = kMostRequestBytes + (std::int64_t{128} << 10);
inline constexpr std::int64_t kMostUnreadOfAll = std::int64_t{4} << 20;
inline constexpr std::int64_t kUnreadInACrowd = std::int64_t{64} << 10;

/// @thread one thread, the server's; libzmq's reads what is allowed
class Connections {
public:
    /// @param watched  not bound yet; outlives this
    Connections(zmq::context_t& context, zmq::socket_t& watched);
    ~Connections();
    Connections(const Connections&) = delete;
    Connections& operator=(const Connections&) = delete;

    /// Readable when something came since look() was last called.
    int descriptor() const { return events_.get(zmq::sockopt::fd); }
    /// Takes note of who has come and who has gone.
    void look();
    /// A message was taken.
    /// @param descriptor  the connection's, -1: of a peer whose protocol is too old to tell
    /// @return whether it may be served: it has not asked too often
    bool taken(int descriptor);

    /// This one waits for what takes long, and may be silent meanwhile: it is not closed because there are too many.
    void spare(int descriptor) { spared_ = descriptor; }

    std::size_t size() const { return open_.size(); }
    /// Closed because there were too many.
    std::uint64_t closed() const { return closed_; }

private:
    using SteadyTime = std::chrono::steady_clock::time_point;
    struct Connection {
        SteadyTime heard;  ///< or accepted
        bool has_asked = false;
        double tokens = kMostRequestsAtOnce;
        bool closing = false;
        bool refused = false;  ///< lately, and it has been said
    };
    void close_most_silent(int newcomer);

    zmq::socket_t& watched_;
    zmq::socket_t events_;
    std::map<int, Connection> open_;  ///< by descriptor
    int spared_ = -1;
    Connection strangers_;  ///< those without one
    std::uint64_t closed_ = 0;
};

/// Closed for what lay unread of them, by all of this process's servers.
std::uint64_t closed_for_unread();

}  // namespace ringside::agent
