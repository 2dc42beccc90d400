// Questions that the other side is too old for: answered, said, and nobody waits. ../../integration/versions.py has a recorded version.
#include <doctest/doctest.h>

#include "agents.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
namespace fbs = ringside::fbs;
using ringside::schema::ErrorCode;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto kSoon = std::chrono::seconds(5);

/// Answers each message as one that can't read it did before an answer bore the question's id.
class OlderAgent {
public:
    explicit OlderAgent(const Folder& folder) : endpoint(ipc_endpoint(folder, "older")) {
        socket_.set(zmq::sockopt::linger, 0);
        socket_.bind(endpoint);
        thread_ = std::thread([this] { serve(); });
    }
    ~OlderAgent() {
        stop_.raise();
        thread_.join();
    }

    const std::string endpoint;

private:
    void serve() {
        const MessageBytes answer = pack(0, error_reply({ErrorCode::kInput, "kind 99 is none"}));
        while (true) {
            zmq::pollitem_t items[] = {{socket_.handle(), 0, ZMQ_POLLIN, 0},
                                       {nullptr, stop_.fd(), ZMQ_POLLIN, 0}};
            zmq::poll(items, 2);
            if ((items[1].revents & ZMQ_POLLIN) != 0) return;
            zmq::message_t who, what;
            if (!socket_.recv(who) || !socket_.recv(what)) return;
            socket_.send(who, zmq::send_flags::sndmore);
            socket_.send(zmq::buffer(answer), zmq::send_flags::none);
        }
    }

    zmq::context_t context_{1};
    zmq::socket_t socket_{context_, zmq::socket_type::router};
    Event stop_;
    std::thread thread_;
};

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("older: a question of a kind that only a later version knows is answered by its id") {
        const Folder folder;
        Agent agent(folder, "a");
        agent.serve();
        flatbuffers::FlatBufferBuilder builder;
        const auto content = fbs::CreatePingRequest(builder).Union();
        fbs::FinishMessageBuffer(
            builder, fbs::CreateMessage(builder, 1, 4711, static_cast<fbs::Content>(99), content));
        zmq::context_t context(1);
        zmq::socket_t dealer(context, zmq::socket_type::dealer);
        dealer.set(zmq::sockopt::linger, 0);
        dealer.connect(agent.endpoint);
        dealer.send(zmq::buffer(builder.GetBufferPointer(), builder.GetSize()),
                    zmq::send_flags::none);
        zmq::message_t frame;
        REQUIRE(dealer.recv(frame));
        auto reply = unpack_message({static_cast<const std::uint8_t*>(frame.data()), frame.size()});
        REQUIRE(reply);
        CHECK(reply->id == 4711);
        REQUIRE(content_as<fbs::ErrorReplyT>(*reply) != nullptr);
        CHECK(content_as<fbs::ErrorReplyT>(*reply)->message.find("kind 99") != std::string::npos);
    }

    TEST_CASE("older: an answer without an id is the answer to what was asked last") {
        const Folder folder;
        const OlderAgent older(folder);
        auto client = Client::connect(older.endpoint);
        REQUIRE(client);
        const auto began = Clock::now();
        const auto reply =
            (*client)->ask<fbs::PeersReplyT>(fbs::PeersRequestT{}, Milliseconds(20'000));
        REQUIRE_FALSE(reply);
        CHECK(Clock::now() - began < kSoon);
        CHECK(reply.error().code == ErrorCode::kRefused);
        CHECK(reply.error().message.find("it is older") != std::string::npos);
        CHECK(reply.error().message.find("kind 99") != std::string::npos);
    }

    TEST_CASE("older: a peer that can't read what its leader asks is told, the others go on") {
        const Folder folder;
        Agent a(folder, "a");
        a.serve();
        const OlderAgent older(folder);
        fbs::TraceRequestT request;
        request.peers = {older.endpoint};
        request.duration_ms = 50;
        auto client = Client::connect(a.endpoint);
        REQUIRE(client);
        const auto reply = (*client)->trace(request, {});
        REQUIRE(reply);
        REQUIRE(reply->nodes.size() == 2);
        CHECK(reply->nodes[0]->error.empty());
        CHECK(reply->nodes[1]->error.find("it is older") != std::string::npos);
    }
}
