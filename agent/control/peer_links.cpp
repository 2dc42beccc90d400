#include "agent/control/peer_links.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <unordered_map>

#include "agent/control/at_once.hpp"
#include "agent/control/dialing.hpp"
#include "agent/control/endpoint.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;
using Clock = std::chrono::steady_clock;
using Results = std::vector<schema::Result<void>>;

/// A node answers one question at a time, and pings; a relay is told when there is no room (RelayFlow).
constexpr int kAnswersWaiting = 8;
constexpr std::chrono::milliseconds kLookUp{500};  ///< between looks whether to give up

/// How a socket calls a peer; its first byte must not be 0.
std::string routing_id(std::size_t number) {
    const auto wide = static_cast<std::uint32_t>(number);
    std::string id(1 + sizeof wide, 'p');
    std::memcpy(id.data() + 1, &wide, sizeof wide);
    return id;
}

std::optional<std::size_t> number_of(const zmq::message_t& id) {
    std::uint32_t number = 0;
    if (id.size() != 1 + sizeof number) return std::nullopt;
    std::memcpy(&number, static_cast<const char*>(id.data()) + 1, sizeof number);
    return number;
}

/// Whether anybody listens there; over tcp many at once: hosts that don't answer take two seconds each.
Results probe_all(const std::vector<std::string>& endpoints,
                  const std::function<bool()>& given_up) {
    Results results(endpoints.size());
    std::vector<std::size_t> far;
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
        if (is_tcp(endpoints[i]))
            far.push_back(i);
        else
            results[i] = probe_endpoint(endpoints[i]);
    }
    at_once(far.size(), [&](std::size_t n) {
        if (!given_up()) results[far[n]] = probe_endpoint(endpoints[far[n]]);
    });
    return results;
}

}  // namespace

PeerLinks::Line::Line(zmq::context_t& context, const Key* key)
    : socket(dialing_socket(context, zmq::socket_type::router, key)) {
    // What can't be sent is an error, and not lost in silence.
    socket.set(zmq::sockopt::router_mandatory, true);
    // Of thousands of peers, each of which may say what it likes before anybody reads it.
    socket.set(zmq::sockopt::rcvhwm, kAnswersWaiting);
    socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(kMostAnswerBytes));
}

void PeerLinks::connect_to(Line& line, std::size_t peer, const std::string& endpoint) {
    line.socket.set(zmq::sockopt::connect_routing_id, routing_id(line.peers.size()));
    line.peers.push_back(peer);
    line.socket.connect(endpoint);
}

Results PeerLinks::connect(const std::vector<std::string>& endpoints,
                           const std::vector<Key>& keys) {
    Results results = probe_all(endpoints, [this] { return given_up(); });
    const std::size_t first = places_.size();
    places_.resize(first + endpoints.size());
    std::vector<std::size_t> far;
    try {
        if (lines_.empty()) lines_.emplace_back(context_, nullptr);
        Line& near = lines_.front();
        for (std::size_t i = 0; i < endpoints.size(); ++i) {
            if (is_tcp(endpoints[i])) {
                if (keys.empty()) results[i] = key_missing(endpoints[i]);
                if (results[i]) far.push_back(i);
            } else if (results[i]) {
                places_[first + i] = {0, near.peers.size(), true};
                connect_to(near, first + i, endpoints[i]);
            }
        }
        for (const Key& key : keys) {
            if (!far.empty()) agree(first, endpoints, key, far, results);
        }
    } catch (const zmq::error_t& error) {
        for (std::size_t i = 0; i < results.size(); ++i) {
            if (results[i] && !places_[first + i].connected)
                results[i] =
                    Error{ErrorCode::kInternal, "connect to " + endpoints[i] + ": " + error.what()};
        }
    }
    return results;
}

/// Connects to all that are wanted with one key.
/// @param first   the peer that the first endpoint is
/// @param wanted  by endpoint; afterwards those that hold another key
void PeerLinks::agree(std::size_t first, const std::vector<std::string>& endpoints, const Key& key,
                      std::vector<std::size_t>& wanted, Results& results) {
    Line& line = lines_.emplace_back(context_, &key);
    Handshakes handshakes(context_, line.socket);
    std::unordered_map<std::string, std::size_t> waiting;
    for (const std::size_t i : wanted) {
        results[i] = no_handshake(endpoints[i]);
        waiting.emplace(endpoints[i], i);
        places_[first + i] = {lines_.size() - 1, line.peers.size(), false};
        connect_to(line, first + i, endpoints[i]);
    }
    wanted.clear();
    const auto deadline = Clock::now() + kHandshakeLimit;
    while (!waiting.empty() && !given_up()) {
        const auto outcome = handshakes.next(std::min(deadline, Clock::now() + kLookUp));
        if (!outcome && Clock::now() >= deadline) break;
        if (!outcome) continue;
        const auto found = waiting.find(outcome->endpoint);
        if (found == waiting.end()) continue;
        const std::size_t i = found->second;
        waiting.erase(found);
        if (outcome->agreed) {
            places_[first + i].connected = true;
            results[i] = {};
            continue;
        }
        // It would go on trying.
        line.socket.disconnect(endpoints[i]);
        results[i] = other_key(endpoints[i]);
        wanted.push_back(i);
    }
}

schema::Result<void> PeerLinks::send(std::size_t peer, const MessageBytes& bytes) {
    zmq::message_t body(bytes.data(), bytes.size());
    return send(peer, body);
}

schema::Result<void> PeerLinks::send(std::size_t peer, zmq::message_t& shared) {
    const Place& place = places_[peer];
    if (!place.connected) return Error{ErrorCode::kInternal, "send to a peer without a connection"};
    zmq::socket_t& socket = lines_[place.line].socket;
    try {
        const auto flags = zmq::send_flags::dontwait;
        const std::string id = routing_id(place.number);
        zmq::message_t body;
        body.copy(shared);
        if (socket.send(zmq::buffer(id), flags | zmq::send_flags::sndmore) &&
            socket.send(body, flags))
            return {};
    } catch (const zmq::error_t& error) {
        return Error{ErrorCode::kNoAgent, std::string("send to a peer: ") + error.what()};
    }
    return Error{ErrorCode::kNoAgent,
                 "send to a peer: the agent takes nothing more; is it stopped?"};
}

std::optional<PeerLinks::Frame> PeerLinks::receive() {
    for (Line& line : lines_) {
        try {
            zmq::message_t id;
            if (!line.socket.recv(id, zmq::recv_flags::dontwait)) continue;
            Frame frame{0, {}};
            // All parts have come when the first has.
            (void)line.socket.recv(frame.body);
            while (frame.body.more()) {
                frame.parts = true;
                (void)line.socket.recv(frame.body);
            }
            const auto number = number_of(id);
            if (!number || *number >= line.peers.size()) continue;
            frame.peer = line.peers[*number];
            return frame;
        } catch (const zmq::error_t&) {
            // A signal: whoever waits comes again.
            continue;
        }
    }
    return std::nullopt;
}

void PeerLinks::linger(std::chrono::milliseconds limit) {
    for (Line& line : lines_)
        line.socket.set(zmq::sockopt::linger, static_cast<int>(limit.count()));
}

void PeerLinks::add_to(std::vector<zmq::pollitem_t>& items) {
    for (Line& line : lines_) items.push_back({line.socket.handle(), 0, ZMQ_POLLIN, 0});
}

}  // namespace ringside::agent
