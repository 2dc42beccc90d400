// What a server does to be reached: its socket's file here, and for other hosts its tcp endpoint and the note by which they find it.
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "agent/control/beside.hpp"
#include "agent/control/server.hpp"
#include "agent/control/socket_file.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;
using Clock = std::chrono::steady_clock;

constexpr Milliseconds kLookUp{1000};       ///< between looks at the socket's file
constexpr std::chrono::hours kKeepNote{1};  ///< one that is a day old is an agent's that died

}  // namespace

schema::Result<void> Server::bind_tcp(const std::string& endpoint, const Key& key) {
    if (!gate_) {
        auto gate = Gate::open(context_, key);
        if (!gate) return gate.error();
        gate_ = std::move(*gate);
    }
    schema::Result<void> bound;
    try {
        socket_.set(zmq::sockopt::ipv6, true);
        socket_.set(zmq::sockopt::curve_server, true);
        socket_.set(zmq::sockopt::curve_secretkey, key.secret_half);
        socket_.bind(endpoint);
    } catch (const zmq::error_t& error) {
        bound = Error{ErrorCode::kRefused, "bind " + endpoint + ": " + error.what() +
                                               "; name an address of this host and a free port"};
    }
    // Options are of the binds that follow: an ipc endpoint that is bound again has no key.
    socket_.set(zmq::sockopt::curve_server, false);
    return bound;
}

schema::Result<void> Server::listen_far(const FarSetup& setup) {
    std::vector<std::string> ports;
    for (const std::uint16_t port : setup.ports) ports.push_back(std::to_string(port));
    ports.emplace_back("*");
    schema::Result<void> bound;
    for (const std::string& port : ports) {
        bound = bind_tcp("tcp://" + setup.address + ":" + port, setup.key);
        if (bound) {
            // libzmq has the address in a form of its own.
            const std::string taken = socket_.get(zmq::sockopt::last_endpoint);
            far_endpoint_ = "tcp://" + setup.address + taken.substr(taken.rfind(':'));
            break;
        }
    }
    if (!bound) return bound;
    service_.take_key(setup.key);
    if (setup.note.member.empty()) return {};
    service_.take_note({setup.note.member, setup.note.node, far_endpoint_});
    auto note = RendezvousNote::write({setup.note.member, setup.note.node, far_endpoint_});
    if (!note) return note.error();
    note_.emplace(std::move(*note));
    note_kept_ = Clock::now();
    return {};
}

void Server::listen_far(std::future<std::optional<FarSetup>> setup, Milliseconds wait) {
    far_ = std::move(setup);
    look_far(wait);
}

/// Somebody who empties the job directory takes our socket's file with it.
/// @return whether the socket was used
bool Server::check_socket_file() {
    const SteadyTime now = Clock::now();
    if (socket_file_.empty() || now - socket_file_seen_ < kLookUp) return false;
    socket_file_seen_ = now;
    if (::access(socket_file_.c_str(), F_OK) == 0) return false;
    const std::string& endpoint = service_.identity().endpoint;
    auto bound = bind_again(socket_, endpoint);
    const std::string said =
        bound ? endpoint + ": its file had been removed; it is there again" : bound.error().message;
    if (bound || said != last_complaint_) spdlog::warn(said);
    last_complaint_ = bound ? "" : said;
    return true;
}

/// @return whether the socket was used
bool Server::look_far(Milliseconds wait) {
    if (!far_.valid() || far_.wait_for(wait) != std::future_status::ready) return false;
    if (const auto setup = far_.get()) {
        // Who is here is served all the same.
        if (auto far = listen_far(*setup); !far) spdlog::warn(far.error().message);
    }
    return true;
}

/// Not by this thread: a home that hangs must not keep anybody from being served.
void Server::keep_note() {
    if (!note_ || Clock::now() - note_kept_ < kKeepNote) return;
    note_kept_ = Clock::now();
    std::thread keeper;
    // Else in an hour: a note lasts for a day.
    if (run_beside(keeper, [path = note_->path()] { keep_noted(path); })) keeper.detach();
}

}  // namespace ringside::agent
