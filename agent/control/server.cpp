#include "agent/control/server.hpp"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "agent/control/endpoint.hpp"
#include "agent/control/socket_file.hpp"
#include "agent/control/trace_run.hpp"
#include "schema/ticks.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;
using Clock = std::chrono::steady_clock;

constexpr int kMostInARow = 64;        ///< messages before the other descriptors get their turn
constexpr Milliseconds kLookUp{1000};  ///< between looks at what nobody tells the loop
constexpr int kLingerMs = 1000;
/// A leader says nothing to its relays while it measures others' clocks.
constexpr int kLeasesOfRelay = 4;

std::string host_name() {
    char host[256] = {};
    return ::gethostname(host, sizeof host - 1) == 0 ? host : "unknown";
}

void configure(zmq::socket_t& socket) {
    socket.set(zmq::sockopt::linger, kLingerMs);
    socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(kMostRequestBytes));
    socket.set(zmq::sockopt::sndhwm, 64);
    socket.set(zmq::sockopt::rcvhwm, 32);
    socket.set(zmq::sockopt::backlog, 128);
    // Connections that say nothing, and clients that are stopped, are dropped: libzmq keeps them for ever by default.
    socket.set(zmq::sockopt::handshake_ivl, 3000);
    socket.set(zmq::sockopt::heartbeat_ivl, 5000);
    socket.set(zmq::sockopt::heartbeat_timeout, 15000);
    // Another user is not served, whatever somebody has done to the modes of the socket's file and its directories. Root may do all anyway.
    for (const uid_t user : {::geteuid(), uid_t{0}})
        ::zmq_setsockopt(socket.handle(), ZMQ_IPC_FILTER_UID, &user, sizeof user);
    // A reply to a client that is gone is an error to count, not a silent loss.
    socket.set(zmq::sockopt::router_mandatory, true);
}

Error asks_too_often() {
    return {ErrorCode::kRefused, "this agent answers a connection " +
                                     std::to_string(static_cast<int>(kMostRequestsPerSecond)) +
                                     " requests a second; ask less often"};
}

}  // namespace

Server::Server(Engine& engine, AgentIdentity identity, zmq::context_t* shared)
    : context_(shared != nullptr ? *shared : own_context_.emplace(1)),
      socket_(context_, zmq::socket_type::router),
      connections_(context_, socket_),
      service_(engine, std::move(identity)),
      desk_(service_, context_, outbox_),
      relays_(service_, context_, outbox_),
      files_(engine.options().output_root) {}

schema::Result<std::unique_ptr<Server>> Server::bind(Engine& engine, const ServerSetup& setup) {
    AgentIdentity identity;
    identity.host = host_name();
    identity.version = setup.version;
    identity.endpoint = setup.endpoint;
    identity.started_monotonic_ns = schema::read_clock(CLOCK_MONOTONIC).value;
    std::unique_ptr<Server> server(new Server(engine, std::move(identity), setup.context));
    configure(server->socket_);
    if (setup.key) server->service_.take_key(*setup.key);
    if (auto listening = server->listen(setup); !listening) return listening.error();
    server->lease_.set_length(setup.lease);
    server->relays_.set_silence(kLeasesOfRelay * setup.lease);
    return server;
}

schema::Result<void> Server::listen(const ServerSetup& setup) {
    if (!is_tcp(setup.endpoint)) {
        auto file = bind_socket_file(socket_, setup.endpoint);
        if (!file) return file.error();
        socket_file_ = *file;
        if (setup.far) {
            // Who is here is served all the same.
            if (auto far = listen_far(*setup.far); !far) spdlog::warn(far.error().message);
        }
        return {};
    }
    if (auto address = tcp_address(setup.endpoint); !address) return address.error();
    if (!setup.key) return key_missing(setup.endpoint);
    return bind_tcp(setup.endpoint, *setup.key);
}

Server::~Server() {
    if (!socket_file_.empty()) ::unlink(socket_file_.c_str());
}

/// Waits for the sockets' own descriptors: zmq_poll looks at each socket three times, which is most of what a ping would cost. libzmq raises a descriptor once,
/// for what came after its socket was last found empty, so requests are read until there are none, after everything else that uses the socket.
void Server::serve(int stop_fd) {
    pollfd items[] = {{socket_.get(zmq::sockopt::fd), POLLIN, 0},
                      {outbox_.fd(), POLLIN, 0},
                      {stop_fd, POLLIN, 0},
                      {connections_.descriptor(), POLLIN, 0}};
    bool unread = true;
    while (!shutdown_) {
        const auto wait = unread ? Milliseconds(0) : std::min(kLookUp, lease_.length());
        if (::poll(items, std::size(items), static_cast<int>(wait.count())) < 0) continue;
        // First: what has come of a connection is counted as its own.
        if (items[3].revents != 0 || unread) connections_.look();
        if (items[1].revents != 0) send_letters();
        if (items[2].revents != 0) break;
        relays_.look();
        const bool used = check_socket_file() || look_far(Milliseconds(0)) || items[1].revents != 0;
        keep_note();
        if (unread || used || items[0].revents != 0) unread = receive_some();
        check_lease();  // after the reading: whose word lay there was not silent
    }
    note_.reset();  // from here on nobody is served
}

/// @return whether there may be more
bool Server::receive_some() {
    try {
        for (int i = 0; i < kMostInARow; ++i) {
            if (!receive_one()) return false;
        }
    } catch (const zmq::error_t& error) {
        spdlog::warn("read a request: {}", error.what());
    } catch (const std::bad_alloc&) {
        // Of this request; what is captured goes on.
        ++counts_.damaged;
        spdlog::warn("read a request: there is no memory for it; it stays unanswered");
    }
    return true;
}

bool Server::receive_one() {
    zmq::message_t identity, body;
    if (!socket_.recv(identity, zmq::recv_flags::dontwait)) return false;
    if (!identity.more() || !socket_.recv(body)) return true;
    const int descriptor = ::zmq_msg_get(body.handle(), ZMQ_SRCFD);
    const bool granted = connections_.taken(descriptor);
    const std::string sender = sender_of(body);
    if (body.more()) {
        ++counts_.parts;
        if (granted) Audit::damaged(sender, "a message of more than one part");
        zmq::message_t rest;
        while (socket_.recv(rest) && rest.more()) {
        }
        return true;
    }
    const std::string who = identity.to_string();
    const std::span bytes{static_cast<const std::uint8_t*>(body.data()), body.size()};
    if (!granted) {
        ++counts_.too_often;
        ++counts_.refused;
        audit_.too_often(sender);
        put({who, pack(id_of_refused(bytes), error_reply(asks_too_often()))});
        return true;
    }
    auto message = unpack_message(bytes, Speaker::kClient);
    if (!message) {
        ++counts_.damaged;
        Audit::damaged(sender, message.error().message);
        put({who, pack(id_of_refused(bytes), error_reply(message.error()))});
        return true;
    }
    ++counts_.requests;
    audit_.asked(who, sender, *message);
    handle({who, std::move(*message), body.size(), descriptor});
    return true;
}

void Server::check_lease() {
    const auto lost = lease_.run_out(Clock::now());
    if (!lost) return;
    const EngineStatus status = service_.engine().status();
    if (!status.capturing || status.capture_id != *lost) return lease_.over();
    const std::string silence = std::to_string(lease_.length().count()) + " ms";
    const auto taken = orders_->submit_own([this, id = *lost, silence] {
        auto ended = service_.end_early(id, "its leader had not been heard of for " + silence);
        if (!ended) spdlog::error("{}", ended.error().message);
    });
    if (!taken) return;  // told of again soon
    lease_.over();
    spdlog::warn("end {}: its leader has not been heard of for {}; the dump is kept",
                 capture_name(*lost), silence);
}

/// Whoever asked for it is told how far it is, and of its end.
void Server::finish_trace() {
    desk_.end();
    while (desk_.running()) {
        pollfd item{outbox_.fd(), POLLIN, 0};
        ::poll(&item, 1, static_cast<int>(kLookUp.count()));
        send_letters();
    }
    desk_.finish();
}

schema::Result<void> Server::finish() {
    // With what they are at, and with orders to stop; who waits for anything else is refused. Nothing is asked of them any more.
    orders_.reset();
    queries_.reset();
    files_.end();
    files_worker_.reset();
    finish_trace();
    schema::Result<void> result;
    if (service_.from_start_id() != 0) {
        fbs::TraceRequestT request;
        request.finish = true;
        Cancel never;
        TraceRun run(service_, context_, request, service_.from_start_id(), never,
                     [](const fbs::ProgressT&) {});
        if (auto reply = run.run(); !reply) result = reply.error();
    } else if (const EngineStatus status = service_.engine().status(); status.capturing) {
        fbs::StopRequestT order;
        order.capture_id = status.capture_id;
        order.stop_node_ns = service_.engine().node_now().value;
        if (auto stopped = service_.stop(order); !stopped) result = stopped.error();
    }
    relays_.finish();
    // Last: it may wait for Slurm or for a home that hangs, and the dump must not.
    finder_.reset();
    send_letters();
    return result;
}

}  // namespace ringside::agent
