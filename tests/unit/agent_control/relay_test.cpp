// One relay, asked by hand: what it passes on and what not, how many it takes, and when it ends.
#include <doctest/doctest.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <zmq.hpp>

#include "agent/control/relay_desk.hpp"
#include "agents.hpp"
#include "by_hand.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
namespace fbs = ringside::fbs;
using ringside::schema::ErrorCode;

namespace {

using Clock = std::chrono::steady_clock;

ErrorCode code_of(fbs::MessageT& message) {
    const auto* error = content_as<fbs::ErrorReplyT>(message);
    REQUIRE(error != nullptr);
    return error_of(*error).code;
}

/// A node that answers its first message with very many, as fast as they are taken.
class Flood {
public:
    static constexpr std::uint32_t kMessages = 6000;
    static constexpr std::size_t kBytes = 16 << 10;

    explicit Flood(const std::string& endpoint) : socket_(context_, zmq::socket_type::router) {
        socket_.set(zmq::sockopt::router_mandatory, true);
        socket_.set(zmq::sockopt::sndhwm, 16);
        socket_.set(zmq::sockopt::linger, 0);
        socket_.bind(endpoint);
        thread_ = std::thread([this] { run(); });
    }
    ~Flood() { thread_.join(); }

private:
    void run() {
        zmq::message_t who, asked;
        if (!socket_.recv(who) || !socket_.recv(asked)) return;
        const std::string name = who.to_string();
        std::vector<std::uint8_t> bytes(kBytes);
        for (std::uint32_t i = 0; i < kMessages; ++i) {
            std::memcpy(bytes.data(), &i, sizeof i);
            (void)socket_.send(zmq::buffer(name), zmq::send_flags::sndmore);
            (void)socket_.send(zmq::buffer(bytes), zmq::send_flags::none);
        }
    }

    zmq::context_t context_;
    zmq::socket_t socket_;
    std::thread thread_;
};

/// Somebody listens there, and never takes a connection.
class Deaf {
public:
    explicit Deaf(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
        REQUIRE(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
        REQUIRE(::listen(fd_, 16) == 0);
    }
    ~Deaf() { ::close(fd_); }
    Deaf(const Deaf&) = delete;
    Deaf& operator=(const Deaf&) = delete;

private:
    int fd_;
};

std::size_t resident_bytes() {
    std::size_t all = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> all >> resident;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("messages: a kind is told of what unpacks, and of nothing else") {
        MessageBytes ping = pack(4, fbs::PingRequestT{});
        const auto kind = kind_of(ping);
        REQUIRE(kind);
        CHECK(*kind == fbs::Content::PingRequest);
        ping.resize(ping.size() - 1);
        CHECK(kind_of(ping).error().code == ErrorCode::kInput);
    }

    TEST_CASE("relay: they close what a leader that is gone has left, and the node its capture") {
        const Folder folder;
        Agent relay(folder, "relay", 0, 0, Milliseconds(300));
        Agent node(folder, "node", 0, 0, Milliseconds(300));
        relay.serve();
        node.serve();
        ByHand leader(relay.endpoint);
        auto opened = leader.open({node.endpoint, "ipc:///none/there.sock"});
        const auto* faults = content_as<fbs::RelayOpenReplyT>(opened);
        REQUIRE(faults != nullptr);
        REQUIRE(faults->faults.size() == 1);
        CHECK(faults->faults[0]->node == 1);
        fbs::PrepareRequestT prepare;
        prepare.capture_id = 9;
        leader.pass_on({0, 1, 7}, prepare);
        auto prepared = leader.hear_through();
        CHECK(prepared.id == 77);
        CHECK(content_as<fbs::PrepareReplyT>(prepared) != nullptr);
        CHECK(node.engine.status().capturing);
        // No word from here on: first the node's capture ends, then the relay.
        const SteadyTime limit = Clock::now() + Milliseconds(10'000);
        while (node.engine.status().capturing && Clock::now() < limit)
            std::this_thread::sleep_for(Milliseconds(10));
        CHECK_FALSE(node.engine.status().capturing);
        std::this_thread::sleep_for(Milliseconds(1'800));
        leader.pass_on({0}, fbs::PingRequestT{});
        auto late = leader.hear();
        const auto* reply = content_as<fbs::RelayReplyT>(late);
        REQUIRE(reply != nullptr);
        CHECK(reply->messages.empty());
        CHECK(reply->over.find("no relay is open") != std::string::npos);
    }

    TEST_CASE("relay: who has clocks measured is answered when it ends before they are") {
        const Folder folder;
        Agent relay(folder, "relay");
        relay.serve();
        zmq::context_t context;
        zmq::socket_t mute(context, zmq::socket_type::router);
        mute.set(zmq::sockopt::linger, 0);
        mute.bind(ipc_endpoint(folder, "mute"));
        ByHand leader(relay.endpoint);
        auto opened = leader.open({ipc_endpoint(folder, "mute")});
        REQUIRE(content_as<fbs::RelayOpenReplyT>(opened) != nullptr);
        leader.say(fbs::RelayClocksRequestT{});
        leader.say(fbs::RelayOpenRequestT{});  // none any more
        auto one = leader.hear(), other = leader.hear();
        auto& clocks = content_as<fbs::RelayOpenReplyT>(one) != nullptr ? other : one;
        CHECK(code_of(clocks) == ErrorCode::kRefused);
        CHECK(clocks.id == opened.id + 1);
    }

    TEST_CASE("relay: what is none of a trace's questions is not passed on") {
        const Folder folder;
        Agent relay(folder, "relay"), node(folder, "node");
        relay.serve();
        node.serve();
        ByHand leader(relay.endpoint);
        auto opened = leader.open({node.endpoint});
        REQUIRE(content_as<fbs::RelayOpenReplyT>(opened) != nullptr);
        const auto refused = [&](auto request) {
            leader.pass_on({0}, std::move(request));
            auto message = leader.hear();
            const auto* reply = content_as<fbs::RelayReplyT>(message);
            REQUIRE(reply != nullptr);
            REQUIRE(reply->faults.size() == 1);
            CHECK(reply->faults[0]->code == fbs::Code::Usage);
        };
        refused(fbs::ShutdownRequestT{});
        refused(fbs::TraceRequestT{});
        refused(fbs::CancelRequestT{});
        refused(fbs::FetchRequestT{});
        refused(fbs::ArmRequestT{});
        refused(fbs::DisarmRequestT{});
        refused(fbs::PeersRequestT{});
        refused(fbs::RelayRequestT{});
        refused(fbs::RelayOpenRequestT{});
        refused(fbs::RelayClocksRequestT{});
        leader.pass_on({0}, fbs::PingRequestT{});
        auto ping = leader.hear_through();
        CHECK(content_as<fbs::PingReplyT>(ping) != nullptr);
    }

    TEST_CASE("relay: no endpoints of other kinds, none twice, no more than the bounds") {
        const Folder folder;
        Agent relay(folder, "relay"), node(folder, "node");
        relay.serve();
        node.serve();
        ByHand leader(relay.endpoint), far(node.endpoint);
        auto other = leader.open({"udp://10.0.0.1:5"});
        CHECK(code_of(other) == ErrorCode::kUsage);
        auto twice = leader.open({node.endpoint, node.endpoint});
        CHECK(code_of(twice) == ErrorCode::kUsage);
        auto keyless = far.open({"tcp://127.0.0.1:9"});
        const auto* opened = content_as<fbs::RelayOpenReplyT>(keyless);
        REQUIRE(opened != nullptr);
        REQUIRE(opened->faults.size() == 1);
        CHECK(opened->faults[0]->code == fbs::Code::RefusedCode);
        std::vector<std::string> many;
        for (std::size_t i = 0; i < kMostRelayed; ++i)
            many.push_back("ipc:///none/" + std::to_string(i));
        auto full = leader.open(many);
        CHECK(content_as<fbs::RelayOpenReplyT>(full) != nullptr);
        many.emplace_back("ipc:///none/more");
        auto more = leader.open(many);
        CHECK(code_of(more) == ErrorCode::kInput);
        ByHand second(relay.endpoint), third(relay.endpoint);
        many.pop_back();
        auto two = second.open(many);
        CHECK(content_as<fbs::RelayOpenReplyT>(two) != nullptr);
        auto three = third.open({node.endpoint});
        CHECK(code_of(three) == ErrorCode::kRefused);
        // Who asks for none makes room.
        auto left = second.open({});
        CHECK(content_as<fbs::RelayOpenReplyT>(left) != nullptr);
        const SteadyTime limit = Clock::now() + Milliseconds(8'000);
        bool taken = false;
        while (!taken && Clock::now() < limit) {
            auto again = third.open({node.endpoint});
            taken = content_as<fbs::RelayOpenReplyT>(again) != nullptr;
        }
        CHECK(taken);
    }

    TEST_CASE("relay: a leader that reads late is told all, in order: nodes wait meanwhile") {
        const Folder folder;
        Agent relay(folder, "relay");
        relay.serve();
        const std::string endpoint = ipc_endpoint(folder, "flood");
        const Flood node(endpoint);
        ByHand leader(relay.endpoint);
        auto opened = leader.open({endpoint});
        REQUIRE(content_as<fbs::RelayOpenReplyT>(opened) != nullptr);
        leader.pass_on({0}, fbs::PingRequestT{});
        // Time enough for the whole flood, if nobody held it back.
        std::this_thread::sleep_for(Milliseconds(500));
        std::uint32_t next = 0;
        while (next < Flood::kMessages) {
            auto envelope = leader.hear();
            const auto* reply = content_as<fbs::RelayReplyT>(envelope);
            REQUIRE(reply != nullptr);
            for (const auto& passed : reply->messages) {
                std::uint32_t number = 0;
                std::memcpy(&number, passed->body.data(), sizeof number);
                REQUIRE(number == next);
                ++next;
            }
        }
        relay.stop();
        CHECK(relay.server->counts().unsent == 0);
    }

    TEST_CASE("relay: what waits for nodes that read nothing is one for all, and bounded") {
        const Folder folder;
        Agent relay(folder, "relay");
        relay.serve();
        std::deque<Deaf> nodes;
        std::vector<std::string> endpoints;
        for (int i = 0; i < 16; ++i) {
            const std::string path = folder.path() + "/deaf" + std::to_string(i);
            nodes.emplace_back(path);
            endpoints.push_back("ipc://" + path);
        }
        ByHand leader(relay.endpoint);
        auto opened = leader.open(endpoints);
        REQUIRE(content_as<fbs::RelayOpenReplyT>(opened) != nullptr);
        std::vector<std::uint32_t> all(nodes.size());
        std::iota(all.begin(), all.end(), 0);
        fbs::PrepareRequestT prepare;
        prepare.pids.assign(kMostPids, 1);
        prepare.ranks.assign(kMostPids / 2, 1);
        const MessageBytes large = pack(1, std::move(prepare));
        /// @return whether all of them may have it
        const auto pass_on = [&] {
            fbs::RelayRequestT envelope;
            for (const MessageBytes& body : {large, pack(2, fbs::ShutdownRequestT{})}) {
                envelope.messages.push_back(std::make_unique<fbs::RelayedT>());
                envelope.messages.back()->nodes = all;
                envelope.messages.back()->body = body;
            }
            envelope.messages.back()->nodes = {0};
            leader.say(std::move(envelope));
            // Of the second message a fault is told in any case: the first has been dealt with.
            auto message = leader.hear();
            const auto* reply = content_as<fbs::RelayReplyT>(message);
            REQUIRE(reply != nullptr);
            const auto refused = std::count_if(
                reply->faults.begin(), reply->faults.end(),
                [](const auto& fault) { return fault->code == fbs::Code::RefusedCode; });
            CHECK((refused == 0 || refused == static_cast<std::ptrdiff_t>(all.size())));
            return refused == 0;
        };
        const std::size_t before = resident_bytes();
        int passed = 0;
        for (int i = 0; i < 40; ++i) passed += pass_on() ? 1 : 0;
        CHECK(passed >= 4);   // as often as the nodes' sum would allow of one of them
        CHECK(passed <= 12);  // of 400 KB each
        CHECK(resident_bytes() < before + (std::size_t{16} << 20));
    }

    TEST_CASE("relay: they measure their nodes' clocks, and tell the quickest pings") {
        const Folder folder;
        Agent relay(folder, "relay", 5'000'000'000), node(folder, "node", 7'000'000'000);
        relay.serve();
        node.serve();
        ByHand leader(relay.endpoint);
        leader.say(fbs::RelayClocksRequestT{});
        auto early = leader.hear();
        CHECK(code_of(early) == ErrorCode::kNothingMatched);
        auto opened = leader.open({"ipc:///none/there.sock", node.endpoint});
        REQUIRE(content_as<fbs::RelayOpenReplyT>(opened) != nullptr);
        leader.say(fbs::RelayClocksRequestT{});
        auto message = leader.hear();
        const auto* clocks = content_as<fbs::RelayClocksReplyT>(message);
        REQUIRE(clocks != nullptr);
        REQUIRE(clocks->nodes.size() == 1);
        CHECK(clocks->nodes[0]->node == 1);
        CHECK(clocks->nodes[0]->samples.size() == 4);
        for (const fbs::PingTimes& times : clocks->nodes[0]->samples) {
            CHECK(times.node_ns() - times.sent_ns() >= 2'000'000'000);
            CHECK(times.received_ns() - times.node_ns() >= -2'000'000'000);
        }
    }
}
