// Keys, and who is let in over tcp.
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "agents.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
namespace fbs = ringside::fbs;
using ringside::schema::ErrorCode;

namespace {

/// A port of loopback that nobody has just now.
std::string free_endpoint() {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    socklen_t size = sizeof address;
    REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    ::close(fd);
    return "tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

/// An agent behind a tcp endpoint.
struct TcpAgent : Agent {
    TcpAgent(const Folder& folder, const std::string& node, const Key& key)
        : Agent(engine_options(folder, node),
                {.endpoint = free_endpoint(), .version = "test", .key = key}) {
        REQUIRE(server);
        serve();
    }
};

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("key: written for its owner alone, read back, never overwritten") {
        const Folder folder;
        const std::string path = folder.path() + "/keys/key";
        const auto key = make_key();
        REQUIRE(key);
        REQUIRE(write_key(path, *key));
        struct stat status {};
        REQUIRE(::stat(path.c_str(), &status) == 0);
        CHECK((status.st_mode & 0777) == 0600);
        const auto read = read_key(path);
        REQUIRE(read);
        CHECK(read->public_half == key->public_half);
        CHECK(read->secret_half == key->secret_half);
        CHECK(write_key(path, *key).error().code == ErrorCode::kRefused);
    }

    TEST_CASE("key: ~/.ringside is its owner's alone from then on, whatever it was") {
        const Folder folder;
        const std::string own = folder.path() + "/.ringside";
        for (const mode_t mode : {0755, 0777, 0770, 0700}) {
            REQUIRE((::mkdir(own.c_str(), 0700) == 0 || errno == EEXIST));
            REQUIRE(::chmod(own.c_str(), mode) == 0);
            const auto changed = make_key_folder(own + "/key");
            REQUIRE(changed);
            CHECK(*changed == (mode != 0700));
            struct stat status {};
            REQUIRE(::stat(own.c_str(), &status) == 0);
            CHECK((status.st_mode & 07777) == 0700);
        }
        REQUIRE(::chmod(own.c_str(), 0755) == 0);
        REQUIRE(write_key(own + "/key", *make_key()));
        struct stat status {};
        REQUIRE(::stat(own.c_str(), &status) == 0);
        CHECK((status.st_mode & 07777) == 0700);
    }

    TEST_CASE("key: none is written where others may put theirs in its place") {
        const Folder folder;
        const std::string shared = folder.path() + "/shared";
        REQUIRE(::mkdir(shared.c_str(), 0700) == 0);
        for (const mode_t mode : {0770, 0777, 0702}) {
            REQUIRE(::chmod(shared.c_str(), mode) == 0);
            CHECK(write_key(shared + "/key", *make_key()).error().code == ErrorCode::kRefused);
            CHECK(::access((shared + "/key").c_str(), F_OK) != 0);
        }
        REQUIRE(::chmod(shared.c_str(), 01777) == 0);  // as /tmp is
        CHECK(write_key(shared + "/key", *make_key()));
    }

    TEST_CASE("key: one that others may read, none, and something else are three errors") {
        const Folder folder;
        const std::string path = folder.path() + "/key";
        REQUIRE(write_key(path, *make_key()));
        REQUIRE(::chmod(path.c_str(), 0640) == 0);
        CHECK(read_key(path).error().code == ErrorCode::kRefused);
        CHECK(read_key(folder.path() + "/none").error().code == ErrorCode::kUsage);
        const std::string other = folder.path() + "/other";
        for (const char* text :
             {"", "ringside-key 1\n", "ringside-key 1\nshort\nshort\n", "ssh-rsa AAAA"}) {
            std::ofstream(other) << text;
            REQUIRE(::chmod(other.c_str(), 0600) == 0);
            CHECK(read_key(other).error().code == ErrorCode::kInput);
        }
    }

    TEST_CASE("tcp: who holds the key is answered, who holds another or none is refused and told") {
        const Folder folder;
        const Key key = *make_key(), other = *make_key();
        const TcpAgent agent(folder, "a", key);
        auto friendly = Client::connect(agent.endpoint, &key);
        REQUIRE(friendly);
        CHECK((*friendly)->ask<fbs::StatusReplyT>(fbs::StatusRequestT{}));
        CHECK(Client::connect(agent.endpoint).error().code == ErrorCode::kRefused);
        CHECK(Client::connect(agent.endpoint, &other).error().code == ErrorCode::kRefused);
        CHECK((*friendly)->ask<fbs::StatusReplyT>(fbs::StatusRequestT{}));
    }

    TEST_CASE("tcp: the public half alone opens nothing") {
        const Folder folder;
        const Key key = *make_key(), own = *make_key();
        const TcpAgent agent(folder, "a", key);
        zmq::context_t context(1);
        zmq::socket_t socket(context, zmq::socket_type::dealer);
        socket.set(zmq::sockopt::linger, 0);
        socket.set(zmq::sockopt::curve_serverkey, key.public_half);
        socket.set(zmq::sockopt::curve_publickey, own.public_half);
        socket.set(zmq::sockopt::curve_secretkey, own.secret_half);
        REQUIRE(::zmq_socket_monitor(socket.handle(), "inproc://events",
                                     ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
                                         ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                                         ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL) == 0);
        zmq::socket_t events(context, zmq::socket_type::pair);
        events.connect("inproc://events");
        socket.connect(agent.endpoint);
        zmq::message_t event;
        REQUIRE(events.recv(event));
        std::uint16_t what = 0;
        std::memcpy(&what, event.data(), sizeof what);
        CHECK(what != ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
        ::zmq_socket_monitor(socket.handle(), nullptr, 0);
    }

    TEST_CASE("tcp: without a key nothing is bound, and a port where nobody listens says so") {
        const Folder folder;
        FakeEngine engine(engine_options(folder, "a"));
        const auto bound =
            Server::bind(engine, {.endpoint = "tcp://127.0.0.1:7", .version = "test"});
        REQUIRE_FALSE(bound);
        CHECK(bound.error().code == ErrorCode::kRefused);
        CHECK(bound.error().message.find("ringside keygen") != std::string::npos);
        const Key key = *make_key();
        CHECK(Client::connect(free_endpoint(), &key).error().code == ErrorCode::kNoAgent);
    }

    TEST_CASE("tcp: one agent leads another over it, and both are in the index") {
        const Folder folder;
        const Key key = *make_key();
        const TcpAgent a(folder, "a", key), b(folder, "b", key);
        auto client = Client::connect(a.endpoint, &key);
        REQUIRE(client);
        fbs::TraceRequestT request;
        request.peers = {a.endpoint, b.endpoint};
        request.duration_ms = 20;
        const auto reply = (*client)->trace(request, {});
        REQUIRE(reply);
        CHECK(reply->nodes.size() == 2);
        for (const auto& node : reply->nodes) CHECK(node->error.empty());
    }
}
