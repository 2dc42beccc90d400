// What a peer may send to a leader, or to a relay, before anybody there reads it.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include <zmq.hpp>

#include "agent/control/at_once.hpp"
#include "agent/control/key.hpp"
#include "agent/control/peer_links.hpp"
#include "deaf_hosts.hpp"
#include "folder.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
namespace fbs = ringside::fbs;

namespace {

using Clock = std::chrono::steady_clock;

/// A peer that has been asked something.
struct Peer {
    explicit Peer(const Folder& folder)
        : endpoint("ipc://" + folder.path() + "/peer.sock"),
          socket(context, zmq::socket_type::router),
          events(context, zmq::socket_type::pair) {
        socket.set(zmq::sockopt::linger, 0);
        socket.set(zmq::sockopt::sndhwm, 1);
        ::zmq_socket_monitor(socket.handle(), "inproc://peer", ZMQ_EVENT_DISCONNECTED);
        events.connect("inproc://peer");
        socket.bind(endpoint);
        REQUIRE(links.connect({endpoint}, {}).front());
        // It has looked first whether anybody listens.
        zmq::message_t event, of;
        REQUIRE(events.recv(event));
        REQUIRE(events.recv(of));
        REQUIRE(links.send(0, pack(1, fbs::PingRequestT{})));
        zmq::message_t body;
        REQUIRE(socket.recv(who));
        REQUIRE(socket.recv(body));
    }
    ~Peer() { ::zmq_socket_monitor(socket.handle(), nullptr, 0); }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;
    bool say(std::size_t bytes) {
        zmq::pollitem_t item{socket.handle(), 0, ZMQ_POLLOUT, 0};
        if (zmq::poll(&item, 1, std::chrono::milliseconds(500)) == 0) return false;
        const std::vector<std::uint8_t> body(bytes);
        return socket.send(zmq::buffer(who.to_string()),
                           zmq::send_flags::sndmore | zmq::send_flags::dontwait) &&
               socket.send(zmq::buffer(body), zmq::send_flags::dontwait);
    }

    zmq::context_t context;
    std::string endpoint;
    zmq::socket_t socket;
    zmq::socket_t events;
    PeerLinks links{context};
    zmq::message_t who;
};

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("peer links: hosts that are not there are looked for all at once") {
        const DeafHosts hosts(200);
        zmq::context_t context;
        PeerLinks links(context);
        const auto from = Clock::now();
        const auto found = links.connect(hosts.endpoints(), {*make_key()});
        // Two rounds of two seconds; one after the other they would take minutes.
        CHECK(Clock::now() - from < Milliseconds(12'000));
        for (const auto& one : found) CHECK_FALSE(one);
    }

    TEST_CASE("peer links: given up, no more hosts are looked for") {
        const DeafHosts hosts(8 * kMostAtOnce);
        zmq::context_t context;
        std::atomic<std::size_t> asked{0};
        PeerLinks links(context, [&] { return ++asked > kMostAtOnce; });
        const auto from = Clock::now();
        const auto found = links.connect(hosts.endpoints(), {*make_key()});
        // One round of two seconds, not eight.
        CHECK(Clock::now() - from < Milliseconds(8'000));
        for (const auto& one : found) CHECK_FALSE(one);
    }

    TEST_CASE("peer links: a peer that says much is held back before it is read") {
        const Folder folder;
        Peer peer(folder);
        peer.socket.set(zmq::sockopt::router_mandatory, true);
        std::size_t said = 0;
        try {
            while (said < 200 && peer.say(std::size_t{1} << 20)) ++said;
        } catch (const zmq::error_t& error) {
            CHECK(error.num() == EAGAIN);
        }
        CHECK(said >= 4);
        CHECK(said < 24);
    }

    TEST_CASE("peer links: an answer that is too large ends its connection") {
        const Folder folder;
        Peer peer(folder);
        zmq::pollitem_t gone{peer.events.handle(), 0, ZMQ_POLLIN, 0};
        REQUIRE(peer.say(kMostAnswerBytes));
        zmq::pollitem_t come{};
        std::vector<zmq::pollitem_t> items;
        peer.links.add_to(items);
        REQUIRE(items.size() == 1);
        come = items[0];
        REQUIRE(zmq::poll(&come, 1, std::chrono::seconds(10)) == 1);
        CHECK(peer.links.receive()->body.size() == kMostAnswerBytes);
        REQUIRE(peer.say(kMostAnswerBytes + 1));
        CHECK(zmq::poll(&gone, 1, std::chrono::seconds(10)) == 1);
        CHECK_FALSE(peer.links.receive());
    }
}
