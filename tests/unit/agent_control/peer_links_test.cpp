// What a peer may send to a leader, or to a relay, before anybody there reads it.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include <zmq.hpp>

#include "agent/control/key.hpp"
#include "agent/control/peer_links.hpp"
#include "folder.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
namespace fbs = ringside::fbs;

namespace {

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
        // Their connections wait for ever: the listener's queue is full.
        const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        socklen_t size = sizeof address;
        auto* const any = reinterpret_cast<sockaddr*>(&address);
        REQUIRE(::bind(listener, any, size) == 0);
        REQUIRE(::listen(listener, 0) == 0);
        REQUIRE(::getsockname(listener, any, &size) == 0);
        std::vector<int> waiting;
        for (int i = 0; i < 4; ++i) {
            waiting.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
            (void)!::connect(waiting.back(), any, size);
        }
        std::vector<std::string> endpoints;
        for (int host = 1; host <= 200; ++host)
            endpoints.push_back("tcp://127.0.0." + std::to_string(host) + ":" +
                                std::to_string(ntohs(address.sin_port)));
        zmq::context_t context;
        PeerLinks links(context);
        const SteadyTime from = std::chrono::steady_clock::now();
        const auto found = links.connect(endpoints, {*make_key()});
        // Two rounds of two seconds; one after the other they would take minutes.
        CHECK(std::chrono::steady_clock::now() - from < Milliseconds(12'000));
        for (const auto& one : found) CHECK_FALSE(one);
        for (const int fd : waiting) ::close(fd);
        ::close(listener);
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
