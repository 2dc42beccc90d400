// What a server's clients may use of it, and the line that each request leaves.
#include <doctest/doctest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <sstream>
#include <thread>

#include "agent/control/audit.hpp"
#include "agents.hpp"
#include "raw_client.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
namespace fbs = ringside::fbs;
using namespace std::string_literals;

namespace {

bool answers(Client& client) {
    return static_cast<bool>(client.ask<fbs::StatusReplyT>(fbs::StatusRequestT{}));
}

/// What is logged while it lives.
class Logged {
public:
    explicit Logged(spdlog::level::level_enum level) : before_(spdlog::default_logger()) {
        auto logger = std::make_shared<spdlog::logger>(
            "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_, true));
        logger->set_pattern("%l: %v");
        logger->set_level(level);
        spdlog::set_default_logger(std::move(logger));
    }
    ~Logged() { spdlog::set_default_logger(before_); }
    std::string text() const { return text_.str(); }
    bool has(const std::string& words) const { return count(words) != 0; }
    int count(const std::string& words) const {
        const std::string all = text();
        int found = 0;
        for (auto at = all.find(words); at != std::string::npos; at = all.find(words, at + 1))
            ++found;
        return found;
    }

private:
    std::ostringstream text_;
    std::shared_ptr<spdlog::logger> before_;
};

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("connections: parts without an end are bounded, and end their connection alone") {
        const Folder folder;
        Agent agent(folder, "a");
        agent.serve();
        auto client = Client::connect(agent.endpoint);
        REQUIRE(client);
        CHECK(answers(**client));
        const std::uint64_t before = closed_for_unread();
        const RawClient raw(agent.endpoint);
        REQUIRE(raw.greet());
        const std::string parts = [] {
            std::string many;
            for (int i = 0; i < 4096; ++i) many += "\x01\0"s;  // more to come, no bytes
            return many;
        }();
        std::int64_t sent = 0;
        while (sent < 16 * kMostUnreadBytes && raw.send(parts))
            sent += static_cast<std::int64_t>(parts.size());
        CHECK(sent >= kMostUnreadBytes / 4 - static_cast<std::int64_t>(parts.size()));
        CHECK(sent < kMostUnreadBytes);  // what the kernel holds included
        CHECK(closed_for_unread() == before + 1);
        CHECK(answers(**client));
        // The longest frame that there may be is none of that: it is read whole, and refused for its text.
        fbs::PrepareRequestT longest;
        longest.capture_id = 1;
        longest.name = std::string(kMostRequestBytes - 1024, 'x');
        for (int i = 0; i < 20; ++i) {
            const auto reply = (*client)->ask<fbs::PrepareReplyT>(fbs::PrepareRequestT(longest));
            REQUIRE_FALSE(reply);
            CHECK(reply.error().code == ringside::schema::ErrorCode::kInput);
        }
        CHECK(closed_for_unread() == before + 1);
        agent.stop();
        CHECK(agent.server->counts().parts == 0);
    }

    TEST_CASE("connections: of too many, those that are silent are closed") {
        const Folder folder;
        Agent agent(folder, "a");
        agent.serve();
        auto client = Client::connect(agent.endpoint);
        REQUIRE(client);
        std::vector<RawClient> idle;
        for (std::size_t i = 0; i < 2 * kMostConnections; ++i) {
            idle.emplace_back(agent.endpoint);
            REQUIRE(idle.back().connected());
            idle.back().greet();
            if (i % 16 == 0) REQUIRE(answers(**client));
        }
        const auto gone = [&] {
            return std::count_if(idle.begin(), idle.end(), [](const RawClient& one) {
                char byte = 0;
                ssize_t n = 1;
                while (n > 0) n = ::recv(one.fd(), &byte, 1, MSG_DONTWAIT);
                return n == 0 || errno != EAGAIN;
            });
        };
        // Well before the heartbeats' timeout, which would close them too.
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        const auto most = static_cast<std::ptrdiff_t>(kMostConnections);
        while (gone() <= most && std::chrono::steady_clock::now() < deadline)
            REQUIRE(answers(**client));
        CHECK(gone() == most + 1);
        agent.stop();
        CHECK(agent.server->connections().closed() == kMostConnections + 1);
        CHECK(agent.server->connections().size() == kMostConnections);
    }

    TEST_CASE("connections: of too many, the one that waits for its trace is not closed") {
        const Folder folder;
        Agent agent(folder, "a");
        agent.serve();
        zmq::context_t context(1);
        zmq::socket_t waits(context, zmq::socket_type::dealer);
        waits.set(zmq::sockopt::linger, 0);
        waits.connect(agent.endpoint);
        fbs::TraceRequestT trace;
        trace.duration_ms = 3'600'000;
        (void)waits.send(zmq::buffer(pack(7, std::move(trace))), zmq::send_flags::none);
        zmq::message_t frame;
        REQUIRE(waits.recv(frame));  // progress: it is led
        std::vector<zmq::socket_t> others;
        for (std::size_t i = 0; i < kMostConnections + 4; ++i) {
            zmq::socket_t& other = others.emplace_back(context, zmq::socket_type::dealer);
            other.set(zmq::sockopt::linger, 0);
            other.set(zmq::sockopt::reconnect_ivl, -1);  // who was closed stays away
            other.set(zmq::sockopt::rcvtimeo, 10'000);
            other.connect(agent.endpoint);
            (void)other.send(zmq::buffer(pack(1, fbs::PingRequestT{})), zmq::send_flags::none);
            REQUIRE(other.recv(frame));
        }
        (void)others.back().send(zmq::buffer(pack(2, fbs::CancelRequestT{})),
                                 zmq::send_flags::none);
        waits.set(zmq::sockopt::rcvtimeo, 10'000);
        bool answered = false;
        while (!answered && waits.recv(frame))
            answered = fbs::GetMessage(frame.data())->content_as_ErrorReply() != nullptr;
        CHECK(answered);
        agent.stop();
        CHECK(agent.server->connections().closed() >= 4);
    }

    TEST_CASE("client: who waits for a trace says now and then that it is there") {
        const Folder folder;
        const std::string endpoint = ipc_endpoint(folder, "leader");
        zmq::context_t context(1);
        zmq::socket_t leader(context, zmq::socket_type::router);
        leader.set(zmq::sockopt::linger, 1000);
        leader.set(zmq::sockopt::rcvtimeo, 6'000);
        leader.bind(endpoint);
        bool pinged = false;
        std::thread leads([&] {
            zmq::message_t who, body;
            if (!leader.recv(who) || !leader.recv(body)) return;
            const auto say = [&](const MessageBytes& bytes) {
                leader.send(zmq::buffer(who.to_string()), zmq::send_flags::sndmore);
                leader.send(zmq::buffer(bytes), zmq::send_flags::none);
            };
            const std::uint64_t id = fbs::GetMessage(body.data())->id();
            if (leader.recv(who) && leader.recv(body)) {
                const fbs::Message* ping = fbs::GetMessage(body.data());
                pinged = ping->content_as_PingRequest() != nullptr;
                say(pack(ping->id(), fbs::PingReplyT{}));
            }
            fbs::TraceReplyT reply;
            reply.job_index = "/x/job.rsj";
            say(pack(id, std::move(reply)));
        });
        auto client = Client::connect(endpoint);
        REQUIRE(client);
        const auto reply = (*client)->trace(fbs::TraceRequestT{}, {});
        leads.join();
        CHECK(pinged);
        REQUIRE(reply);
        CHECK(reply->job_index == "/x/job.rsj");
    }

    TEST_CASE("connections: who asks too often is refused and told why, others are served") {
        const Folder folder;
        Logged logged(spdlog::level::warn);
        Agent agent(folder, "a");
        agent.serve();
        zmq::context_t context(1);
        zmq::socket_t eager(context, zmq::socket_type::dealer);
        eager.set(zmq::sockopt::linger, 0);
        eager.connect(agent.endpoint);
        const MessageBytes ping = pack(1, fbs::PingRequestT{});
        bool refused = false;
        zmq::message_t reply;
        for (int i = 0; i < 1'000'000 && !refused; ++i) {
            (void)eager.send(zmq::buffer(ping), zmq::send_flags::dontwait);
            while (eager.recv(reply, zmq::recv_flags::dontwait)) {
                const auto* said = fbs::GetMessage(reply.data());
                if (const auto* error = said->content_as_ErrorReply()) {
                    CHECK(error->code() == fbs::Code::RefusedCode);
                    CHECK(error->message()->str().find("a second") != std::string::npos);
                    refused = true;
                }
            }
        }
        CHECK(refused);
        auto client = Client::connect(agent.endpoint);
        REQUIRE(client);
        CHECK(answers(**client));
        agent.stop();
        CHECK(agent.server->counts().too_often > 0);
        CHECK(logged.has("request=many result=Refused cause=\"1 requests that came too often"));
    }

    TEST_CASE("audit: a request leaves one line, with who asked, for what and what came of it") {
        const Folder folder;
        Logged logged(spdlog::level::info);
        Agent agent(folder, "a");
        agent.serve();
        auto client = Client::connect(agent.endpoint);
        REQUIRE(client);
        CHECK(answers(**client));
        fbs::PrepareRequestT prepare;
        prepare.capture_id = 1;
        prepare.name = "../x";
        prepare.asker = "mallory\naudit peer=\"root\"";
        CHECK_FALSE((*client)->ask<fbs::PrepareReplyT>(std::move(prepare)));
        CHECK((*client)->ask<fbs::DisarmReplyT>(fbs::DisarmRequestT{}));
        zmq::context_t context(1);
        zmq::socket_t parts(context, zmq::socket_type::dealer);
        parts.connect(agent.endpoint);
        parts.send(zmq::str_buffer("one"), zmq::send_flags::sndmore);
        parts.send(zmq::str_buffer("two"), zmq::send_flags::none);
        parts.send(zmq::str_buffer("hello"), zmq::send_flags::none);
        zmq::message_t reply;
        CHECK(parts.recv(reply));  // to the last one
        agent.stop();
        const std::string peer = " peer=uid:" + std::to_string(::getuid()) +
                                 ",pid:" + std::to_string(::getpid()) + " asker=\"";
        CHECK(logged.has(peer + "mallory?audit peer='root'\" request=PrepareRequest result=Usage"));
        CHECK(logged.has(peer + "\" request=DisarmRequest result=ok ms="));
        CHECK(logged.has("warning: audit time="));
        CHECK(logged.has("request=none result=Input cause=\"read a control message"));
        CHECK(logged.has("more than one part"));
        CHECK_FALSE(logged.has("\naudit peer"));
    }

    TEST_CASE("audit: who only looks has one line, and one that counts the others") {
        const Folder folder;
        Logged logged(spdlog::level::info);
        Agent agent(folder, "a");
        agent.serve();
        for (int i = 0; i < 3; ++i) {
            // Connections come and go: a poller is known by who it is.
            auto client = Client::connect(agent.endpoint);
            REQUIRE(client);
            CHECK(answers(**client));
            CHECK((*client)->ask<fbs::PingReplyT>(fbs::PingRequestT{}));
        }
        agent.stop();
        CHECK(logged.count("request=StatusRequest result=ok") == 1);
        CHECK_FALSE(logged.has("request=PingRequest"));
        CHECK_FALSE(logged.has("request=many"));
        agent.server.reset();
        CHECK(logged.has("beside what has a line: 2 StatusRequest, 3 PingRequest\" ms=0"));
    }

    TEST_CASE("audit: a look that is refused has a line, whichever it is") {
        Logged logged(spdlog::level::info);
        Audit audit;
        for (std::uint64_t id = 1; id <= 3; ++id) {
            fbs::MessageT status;
            status.id = id;
            status.content.Set(fbs::StatusRequestT{});
            audit.asked("mallory", "uid:1", status);
            audit.answered("mallory",
                           id == 3 ? pack(id, error_reply({ringside::schema::ErrorCode::kRefused,
                                                           "too many wait"}))
                                   : pack(id, fbs::StatusReplyT{}));
        }
        CHECK(logged.count("request=StatusRequest result=ok") == 1);
        CHECK(logged.count("request=StatusRequest result=RefusedCode cause=\"too many wait\"") ==
              1);
    }

    TEST_CASE("audit: senders beyond a bound are counted together") {
        Logged logged(spdlog::level::info);
        {
            Audit audit;
            for (std::uint64_t id = 1; id <= 100; ++id) {
                fbs::MessageT status;
                status.id = id;
                status.content.Set(fbs::StatusRequestT{});
                audit.asked("c", "uid:1,pid:" + std::to_string(id), status);
                audit.answered("c", pack(id, fbs::StatusReplyT{}));
            }
        }
        CHECK(logged.count("request=StatusRequest result=ok") == 64);
        CHECK(logged.has("peer=others asker=\"\" request=many result=ok"));
        CHECK(logged.has(": 36 StatusRequest\""));
    }

    TEST_CASE("audit: with a logger of its own it writes whatever the log's level is") {
        Logged logged(spdlog::level::err);
        const auto log = spdlog::default_logger();
        auto own =
            std::make_shared<spdlog::logger>("audit", log->sinks().begin(), log->sinks().end());
        Audit::write_to(own);
        {
            Audit audit;
            fbs::MessageT order;
            order.id = 7;
            order.content.Set(fbs::DisarmRequestT{});
            audit.asked("alice", "uid:2", order);
            audit.answered("alice", pack(7, fbs::DisarmReplyT{}));
        }
        Audit::write_to(nullptr);
        CHECK(logged.has("peer=uid:2 asker=\"\" request=DisarmRequest result=ok"));
    }

    TEST_CASE("audit: an id that is used twice makes nobody's answer another's") {
        Logged logged(spdlog::level::info);
        Audit audit;
        fbs::MessageT order, ping;
        order.id = ping.id = 7;
        order.content.Set(fbs::DisarmRequestT{});
        ping.content.Set(fbs::PingRequestT{});
        audit.asked("mallory", "uid:1", order);
        audit.asked("alice", "uid:2", order);
        audit.asked("mallory", "uid:1", ping);
        audit.answered("mallory", pack(7, fbs::PingReplyT{}));
        const std::string line = "peer=uid:1 asker=\"\" request=DisarmRequest result=";
        CHECK(logged.has(line + "unknown cause=\"its id was used again"));
        CHECK_FALSE(logged.has(line + "ok"));
        audit.answered("alice", pack(7, fbs::DisarmReplyT{}));
        CHECK(logged.has("peer=uid:2 asker=\"\" request=DisarmRequest result=ok"));
    }

    TEST_CASE("audit: who only looks is written down where that is wanted") {
        const Folder folder;
        Logged logged(spdlog::level::debug);
        Agent agent(folder, "a");
        agent.serve();
        auto client = Client::connect(agent.endpoint);
        REQUIRE(client);
        CHECK(answers(**client));
        agent.stop();
        CHECK(logged.has("request=StatusRequest result=ok"));
    }
}
