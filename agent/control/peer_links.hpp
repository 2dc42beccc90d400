// A leader's way to all its peers: one ROUTER for each key that they are reached with, however many they are. A socket for each peer would take a descriptor each
// beside the connection's, libzmq makes a thousand at most, and to wait for any of them would cost as much as there are peers, for every message.
#pragma once

#include <zmq.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/control/key.hpp"
#include "agent/control/link.hpp"
#include "agent/control/messages.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

/// @thread one: the leader's
class PeerLinks {
public:
    /// @param give_up  asked while it waits for peers to connect to; thread-safe, may be empty
    explicit PeerLinks(zmq::context_t& context, std::function<bool()> give_up = {})
        : context_(context), give_up_(std::move(give_up)) {}

    /// Looks whether anybody listens at each endpoint, then connects to all; over tcp it waits until they have agreed on one of the keys, those that are tried
    /// one after the other. Called again, it connects to more.
    /// @param endpoints  none twice; a peer is named by its place in those of all calls
    /// @return for each what Link::connect says
    std::vector<schema::Result<void>> connect(const std::vector<std::string>& endpoints,
                                              const std::vector<Key>& keys);

    std::size_t size() const { return places_.size(); }

    /// Never blocks: an agent that does not read gets no more than a few requests.
    /// @errors NoAgent: the queue is full; Internal: it was not connected to
    schema::Result<void> send(std::size_t peer, const MessageBytes& bytes);
    /// The same; `shared` may be sent to any number of peers, who all have the one in memory.
    schema::Result<void> send(std::size_t peer, zmq::message_t& shared);

    struct Frame {
        std::size_t peer;
        zmq::message_t body;
        bool parts = false;  ///< it had more of them, which no agent sends
    };
    /// The next message of any peer, if one has come. Not verified yet: who measures a clock reads it first.
    std::optional<Frame> receive();

    /// For so long after the end what was sent may still go; without, it is dropped.
    void linger(std::chrono::milliseconds limit);

    /// What to wait for, all together.
    void add_to(std::vector<zmq::pollitem_t>& items);

private:
    /// The peers of one key, or those without.
    struct Line {
        Line(zmq::context_t& context, const Key* key);
        zmq::socket_t socket;
        std::vector<std::size_t> peers;  ///< by the number that they have on this socket
    };
    struct Place {
        std::size_t line = 0;
        std::size_t number = 0;
        bool connected = false;
    };
    void connect_to(Line& line, std::size_t peer, const std::string& endpoint);
    void agree(std::size_t first, const std::vector<std::string>& endpoints, const Key& key,
               std::vector<std::size_t>& wanted, std::vector<schema::Result<void>>& results);
    bool given_up() const { return give_up_ && give_up_(); }

    zmq::context_t& context_;
    const std::function<bool()> give_up_;
    std::vector<Line> lines_;
    std::vector<Place> places_;
};

}  // namespace ringside::agent
