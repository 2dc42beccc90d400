#include "agent/control/dialing.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "agent/control/messages.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

constexpr int kQueuedMessages = 64;

std::string agree_on_a_key(const std::string& endpoint) {
    return "agree on a key with the agent at " + endpoint + ": ";
}

}  // namespace

zmq::socket_t dialing_socket(zmq::context_t& context, zmq::socket_type type, const Key* key) {
    zmq::socket_t socket(context, type);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::sndhwm, kQueuedMessages);
    socket.set(zmq::sockopt::rcvhwm, kQueuedMessages);
    socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(kMostReplyBytes));
    // Longer than we wait: one that is silent must not look like one that has hung up on us.
    socket.set(zmq::sockopt::handshake_ivl, 2 * static_cast<int>(kHandshakeLimit.count()));
    if (key == nullptr) return socket;
    socket.set(zmq::sockopt::ipv6, true);
    socket.set(zmq::sockopt::curve_serverkey, key->public_half);
    socket.set(zmq::sockopt::curve_publickey, key->public_half);
    socket.set(zmq::sockopt::curve_secretkey, key->secret_half);
    return socket;
}

Handshakes::Handshakes(zmq::context_t& context, zmq::socket_t& watched)
    : watched_(watched), events_(context, zmq::socket_type::pair) {
    static std::atomic<std::uint64_t> count{0};
    const std::string name = "inproc://handshake-" + std::to_string(++count);
    ::zmq_socket_monitor(watched_.handle(), name.c_str(),
                         ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                             ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH);
    events_.set(zmq::sockopt::linger, 0);
    events_.set(zmq::sockopt::rcvhwm, 0);  // an event that found no room would be missed
    events_.connect(name);
}

Handshakes::~Handshakes() {
    ::zmq_socket_monitor(watched_.handle(), nullptr, 0);
}

std::optional<Handshakes::Outcome> Handshakes::next(
    std::chrono::steady_clock::time_point deadline) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    zmq::pollitem_t item{events_.handle(), 0, ZMQ_POLLIN, 0};
    zmq::message_t event, endpoint;
    if (zmq::poll(&item, 1, std::max(left, std::chrono::milliseconds(0))) == 0 ||
        !events_.recv(event) || event.size() < sizeof(std::uint16_t) || !events_.recv(endpoint))
        return std::nullopt;
    std::uint16_t what = 0;
    std::memcpy(&what, event.data(), sizeof what);
    return Outcome{endpoint.to_string(), what == ZMQ_EVENT_HANDSHAKE_SUCCEEDED};
}

Error no_handshake(const std::string& endpoint) {
    return {ErrorCode::kNoAgent,
            agree_on_a_key(endpoint) + "no answer; is it stopped, or no agent?"};
}

Error other_key(const std::string& endpoint) {
    return {ErrorCode::kRefused,
            agree_on_a_key(endpoint) +
                "it holds another key, or is no agent; give both the same file "
                "(`ringside keygen`, --key FILE)"};
}

}  // namespace ringside::agent
