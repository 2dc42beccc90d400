#include "agent/control/gate.hpp"

#include <spdlog/spdlog.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

constexpr char kZapEndpoint[] = "inproc://zeromq.zap.01";
constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kShownOfKey = 8;
constexpr std::uint64_t kRefusalsSaid = 100;  ///< each, then one in so many
// Of a request: version, id, domain, address, identity, mechanism, credentials.
constexpr std::size_t kRequestParts = 7;

}  // namespace

schema::Result<std::unique_ptr<Gate>> Gate::open(zmq::context_t& context, const Key& key) {
    std::uint8_t public_half[kKeyBytes];
    if (::zmq_z85_decode(public_half, key.public_half.c_str()) == nullptr)
        return Error{ErrorCode::kInput, "use the key: its public half is not Z85"};
    try {
        zmq::socket_t socket(context, zmq::socket_type::rep);
        socket.set(zmq::sockopt::linger, 0);
        socket.bind(kZapEndpoint);
        return std::unique_ptr<Gate>(new Gate(
            std::move(socket), std::string(reinterpret_cast<const char*>(public_half), kKeyBytes),
            key.public_half.substr(0, kShownOfKey)));
    } catch (const zmq::error_t& error) {
        return Error{ErrorCode::kInternal, std::string("guard tcp connections: ") + error.what()};
    }
}

Gate::Gate(zmq::socket_t socket, std::string public_half, std::string name)
    : socket_(std::move(socket)),
      public_half_(std::move(public_half)),
      name_(std::move(name)),
      thread_([this] { run(); }) {}

Gate::~Gate() {
    ending_.raise();
    thread_.join();
}

void Gate::run() {
    while (true) {
        zmq::pollitem_t items[] = {{socket_.handle(), 0, ZMQ_POLLIN, 0},
                                   {nullptr, ending_.fd(), ZMQ_POLLIN, 0}};
        ::zmq_poll(items, 2, -1);
        if ((items[1].revents & ZMQ_POLLIN) != 0) return;
        if ((items[0].revents & ZMQ_POLLIN) == 0) continue;
        try {
            answer_one();
        } catch (const zmq::error_t& error) {
            spdlog::warn("guard tcp connections: {}", error.what());
        }
    }
}

void Gate::answer_one() {
    std::vector<std::string> parts;
    bool more = true;
    while (more) {
        zmq::message_t frame;
        if (!socket_.recv(frame)) return;
        parts.emplace_back(static_cast<const char*>(frame.data()), frame.size());
        more = frame.more();
    }
    const bool known = parts.size() == kRequestParts && parts[0] == "1.0" && parts[5] == "CURVE" &&
                       parts[6] == public_half_;
    if (!known) {
        const std::uint64_t count = refused_.fetch_add(1, std::memory_order_relaxed) + 1;
        // Strangers must not fill the log.
        if (count <= kRefusalsSaid || count % kRefusalsSaid == 0)
            spdlog::warn("refuse a connection from {}: it holds another key; {} so far",
                         parts.size() > 3 ? parts[3] : "nowhere", count);
    }
    const std::string id = parts.size() > 1 ? parts[1] : "";
    const std::string replies[] = {
        "1.0", id, known ? "200" : "400", known ? "OK" : "another key", known ? name_ : "", ""};
    for (const std::string& part : replies) {
        const bool last = &part == &replies[5];
        (void)socket_.send(zmq::buffer(part),
                           last ? zmq::send_flags::none : zmq::send_flags::sndmore);
    }
}

}  // namespace ringside::agent
