// A tree of leaders: nodes that are reached through others of them, and what becomes of them when a relay can't, won't, or dies.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <chrono>
#include <map>
#include <set>
#include <tuple>

#include "agent/control/key.hpp"
#include "agent/control/relay_desk.hpp"
#include "by_hand.hpp"
#include "index_frames.hpp"
#include "old_agent.hpp"
#include "traced.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
namespace fbs = ringside::fbs;

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint32_t kBehind = 4;  ///< each relay
constexpr int kRelays = 3;
constexpr int kPeers = kRelays * (kBehind + 1);
constexpr int kCalls = 60;

/// A leader and its peers, in whose list each relay stands before its nodes. worker0 is the leader's, and calls the others in turn.
struct Crowd {
    explicit Crowd(const Folder& folder, Milliseconds lease = Milliseconds(15'000)) {
        for (int n = 0; n <= kPeers; ++n) {
            agents.push_back(std::make_unique<Agent>(folder, "n" + std::to_string(n), n * 3'000'000,
                                                     n * 1'000.0, lease));
            agents.back()->engine.processes_to_give = {
                worker_process("worker" + std::to_string(n))};
        }
        for (int call = 0; call < kCalls; ++call) {
            const int callee = 1 + call % kPeers;
            const std::string to = "worker" + std::to_string(callee);
            const auto id = static_cast<std::uint64_t>(call);
            const std::int64_t t = call * 2 * kMs;
            halves[0].push_back(client("worker0", to, id, t, t + 900'000));
            halves[callee].push_back(server(to, "worker0", id, t + 300'000, t + 600'000));
        }
        for (int n = 0; n <= kPeers; ++n) {
            at(n).engine.on_stop = [this, n](FakeEngine& engine, std::uint64_t start,
                                             std::uint64_t) {
                std::uint64_t unset = 0;
                first.compare_exchange_strong(unset, start + 40 * kMs);
                engine.halves_to_give = halves[n];
                for (Half& half : engine.halves_to_give) {
                    half.begin_ticks += first;
                    half.end_ticks += first;
                }
            };
        }
    }
    Agent& at(int n) { return *agents[static_cast<std::size_t>(n)]; }
    static int relay_of(int n) {
        return (n - 1) / static_cast<int>(kBehind + 1) * static_cast<int>(kBehind + 1) + 1;
    }
    void serve() {
        for (const auto& agent : agents) agent->serve();
    }
    fbs::TraceRequestT request(std::uint32_t duration_ms, std::uint32_t beyond = kBehind) {
        std::vector<std::string> peers;
        for (int n = 1; n <= kPeers; ++n) peers.push_back(at(n).endpoint);
        fbs::TraceRequestT request = request_over(peers, duration_ms);
        request.relay_beyond = beyond;
        request.nodes_a_relay = kBehind;
        first = 0;
        return request;
    }

    std::vector<std::unique_ptr<Agent>> agents;
    std::map<int, std::vector<Half>> halves;
    std::atomic<std::uint64_t> first{0};
};

/// A relay, and the node behind it: it has seen that one's clock from very far away.
std::vector<MessageBytes> said_by_liar(fbs::MessageT& message, const std::string& name = "liar") {
    const auto one = [&](auto reply) {
        std::vector<MessageBytes> said;
        said.push_back(pack(message.id, std::move(reply)));
        return said;
    };
    switch (message.content.type) {
        case fbs::Content::PingRequest:
            return {1, ping_reply(message)};
        case fbs::Content::PrepareRequest:
            return one(fbs::PrepareReplyT{});
        case fbs::Content::BeginRequest:
            return one(fbs::BeginReplyT{});
        case fbs::Content::StopRequest:
            return one(fbs::StopReplyT{});
        case fbs::Content::RelayOpenRequest:
            return one(fbs::RelayOpenReplyT{});
        case fbs::Content::StatusRequest: {
            fbs::StatusReplyT status;
            status.node = name;
            status.relays = 512;
            return one(std::move(status));
        }
        case fbs::Content::RelayClocksRequest: {
            fbs::RelayClocksReplyT clocks;
            clocks.nodes.push_back(std::make_unique<fbs::RelayClockT>());
            clocks.nodes[0]->samples.emplace_back(0, 0, 4'000'000'000'000'000'000);
            return one(std::move(clocks));
        }
        case fbs::Content::RelayRequest: {
            fbs::RelayReplyT reply;
            for (const auto& passed : content_as<fbs::RelayRequestT>(message)->messages) {
                auto asked = unpack_message(passed->body);
                for (MessageBytes& body : said_by_liar(*asked, "behind")) {
                    reply.messages.push_back(std::make_unique<fbs::RelayedT>());
                    reply.messages.back()->nodes = {0};
                    reply.messages.back()->body = std::move(body);
                }
            }
            return one(std::move(reply));
        }
        default:
            return {};
    }
}

/// Both sides of each call, by their nodes and where they stand there.
using Joined = std::set<std::tuple<std::uint64_t, std::uint32_t, std::uint64_t, std::uint32_t,
                                   std::uint64_t, fbs::RpcState>>;
Joined joined_of(const std::string& path) {
    Joined joined;
    const auto file = read_file(path);
    for (const fbs::JobIndex* frame : frames_of(file)) {
        if (frame->calls() == nullptr) continue;
        for (const fbs::Call* call : *frame->calls())
            joined.insert({call->span(), call->client().node(), call->client().position(),
                           call->server().node(), call->server().position(), call->state()});
    }
    return joined;
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("relays: the nodes behind them are traced and joined as those of a flat trace") {
        const Folder folder;
        Crowd crowd(folder);
        crowd.serve();
        const auto flat = client_of(crowd.at(0))->trace(crowd.request(250, 512), {});
        REQUIRE(flat);
        const Joined as_flat = joined_of(flat->job_index);
        CHECK(flat->joined_replies == kCalls);
        CHECK(flat->nodes.back()->relay == "");
        auto request = crowd.request(250);
        request.name = "tree";
        const auto tree = client_of(crowd.at(0))->trace(std::move(request), {});
        REQUIRE(tree);
        CHECK(tree->joined_replies == kCalls);
        CHECK(tree->order_violations == 0);
        CHECK(tree->orphans == 0);
        CHECK(joined_of(tree->job_index) == as_flat);
        REQUIRE(tree->nodes.size() == kPeers + 1);
        CHECK(tree->start_spread_ns < 100 * kMs);
        for (int n = 1; n <= kPeers; ++n) {
            const auto& node = *tree->nodes[static_cast<std::size_t>(n)];
            CAPTURE(n);
            CHECK(node.error == "");
            CHECK(node.name == "n" + std::to_string(n));
            const int relay = Crowd::relay_of(n);
            CHECK(node.relay == (n == relay ? "" : crowd.at(relay).endpoint));
            CHECK(beyond_bound(*node.clock, crowd.at(0).engine, crowd.at(n).engine) < 40'000);
            // Two hops, each with its own half of a round trip.
            CHECK(node.clock->bound_ns() < 20 * kMs);
        }
    }

    TEST_CASE("relays: over tcp with a key; who holds another one of the leader's has no relay") {
        const Folder folder;
        const Key job = *make_key(), user = *make_key();
        std::vector<std::unique_ptr<Agent>> agents;
        fbs::TraceRequestT request = request_over({}, 50);
        for (int n = 0; n < 6; ++n) {
            const std::string name = "t" + std::to_string(n);
            ServerSetup setup{.endpoint = ipc_endpoint(folder, name), .version = "test"};
            if (n == 0) setup.key = user;
            setup.far = FarSetup{"127.0.0.1", {}, n == 4 ? user : job};
            agents.push_back(std::make_unique<Agent>(engine_options(folder, name), setup));
            agents.back()->serve();
            if (n > 0) request.peers.push_back(agents.back()->server->far_endpoint());
        }
        request.relay_beyond = request.nodes_a_relay = kBehind;
        const auto reply = client_of(*agents[0])->trace(request, {});
        REQUIRE(reply);
        for (std::size_t n = 1; n < 6; ++n) {
            CAPTURE(n);
            CHECK(reply->nodes[n]->error == "");
            CHECK(reply->nodes[n]->relay == (n == 1 || n == 4 ? "" : request.peers[0]));
        }
    }

    TEST_CASE("relays: of a group whose first is not there and whose second is older, the third") {
        const Folder folder;
        Agent lead(folder, "lead"), third(folder, "third"), last(folder, "last");
        for (Agent* agent : {&lead, &third, &last}) agent->serve();
        const OldAgent old(folder.path() + "/old.sock");
        fbs::TraceRequestT request = request_over(
            {"ipc://" + folder.path() + "/none.sock", old.endpoint, third.endpoint, last.endpoint},
            20);
        request.relay_beyond = 1;
        const auto reply = client_of(lead)->trace(request, {});
        REQUIRE(reply);
        CHECK(reply->nodes[1]->error.find("no such socket") != std::string::npos);
        CHECK(reply->nodes[2]->error == "what is that?");
        CHECK(old.orders == 1);
        CHECK(reply->nodes[3]->error == "");
        CHECK(reply->nodes[4]->error == "");
        CHECK(reply->nodes[4]->relay == third.endpoint);
    }

    TEST_CASE("relays: where nobody of a group will be one, the leader connects to all of it") {
        const Folder folder;
        Agent lead(folder, "lead"), a(folder, "a"), b(folder, "b"), c(folder, "c");
        for (Agent* agent : {&lead, &a, &b, &c}) agent->serve();
        std::vector<std::unique_ptr<ByHand>> others;
        for (const Agent* agent : {&a, &b}) {
            for (std::size_t i = 0; i < kMostRelays; ++i) {
                others.push_back(std::make_unique<ByHand>(agent->endpoint));
                auto opened = others.back()->open({c.endpoint});
                REQUIRE(content_as<fbs::RelayOpenReplyT>(opened) != nullptr);
            }
        }
        fbs::TraceRequestT request = request_over({a.endpoint, b.endpoint, c.endpoint}, 20);
        request.relay_beyond = 1;
        const auto reply = client_of(lead)->trace(request, {});
        REQUIRE(reply);
        for (std::size_t n = 1; n <= 3; ++n) {
            CHECK(reply->nodes[n]->error == "");
            CHECK(reply->nodes[n]->relay == "");
        }
    }

    TEST_CASE("relays: one that dies takes its nodes with it, each is named; the others go on") {
        const Folder folder;
        Crowd crowd(folder, Milliseconds(1'500));
        crowd.serve();
        const int dying = Crowd::relay_of(7);
        TraceHooks hooks;
        hooks.progress = [&](const fbs::ProgressT& progress) {
            if (progress.phase != fbs::Phase::Capturing) return;
            crowd.at(dying).stop();
            crowd.at(dying).server.reset();
        };
        const SteadyTime from = Clock::now();
        const auto reply = client_of(crowd.at(0))->trace(crowd.request(1'000), hooks);
        REQUIRE(reply);
        CHECK(Clock::now() - from < Milliseconds(9'000));
        for (int n = 1; n <= kPeers; ++n) {
            const auto& node = *reply->nodes[static_cast<std::size_t>(n)];
            CAPTURE(n);
            if (Crowd::relay_of(n) != dying) {
                CHECK(node.error == "");
                continue;
            }
            CHECK(node.error != "");
            if (n == dying) continue;
            CHECK(node.error.find("through the relay 'n6' at " + crowd.at(dying).endpoint) !=
                  std::string::npos);
        }
        CHECK(reply->verdicts.size() == kPeers + 1);
        // Nobody is left recording.
        const SteadyTime limit = Clock::now() + Milliseconds(10'000);
        for (int n = dying + 1; n <= dying + static_cast<int>(kBehind); ++n) {
            while (crowd.at(n).engine.status().capturing && Clock::now() < limit)
                std::this_thread::sleep_for(Milliseconds(10));
            CHECK_FALSE(crowd.at(n).engine.status().capturing);
        }
    }

    TEST_CASE("relays: one that dies and has no part in the trace itself is not waited for") {
        const Folder folder;
        Crowd crowd(folder);
        for (int n = 1; n <= kPeers; ++n) crowd.at(n).engine.no_pids_here = true;
        crowd.serve();
        TraceHooks hooks;
        hooks.progress = [&](const fbs::ProgressT& progress) {
            if (progress.phase != fbs::Phase::Capturing) return;
            crowd.at(1).stop();
            crowd.at(1).server.reset();
        };
        const SteadyTime from = Clock::now();
        const auto reply = client_of(crowd.at(0))->trace(crowd.request(500), hooks);
        REQUIRE(reply);
        CHECK(Clock::now() - from < Milliseconds(20'000));
        CHECK(reply->nodes[0]->error == "");
    }

    TEST_CASE("relays: what one says of its nodes' clocks holds up nobody") {
        const Folder folder;
        Agent lead(folder, "lead"), other(folder, "other");
        lead.serve();
        other.serve();
        const ScriptedAgent liar(ipc_endpoint(folder, "liar"), [](fbs::MessageT* message) {
            return message == nullptr ? std::vector<MessageBytes>() : said_by_liar(*message);
        });
        // Two groups of two; the second's first is too old to be one.
        const OldAgent old(folder.path() + "/old.sock");
        fbs::TraceRequestT request = request_over(
            {liar.endpoint, ipc_endpoint(folder, "behind"), old.endpoint, other.endpoint}, 100);
        request.relay_beyond = 1;
        request.nodes_a_relay = 1;
        const auto reply = client_of(lead)->trace(request, {});
        REQUIRE(reply);
        CHECK(reply->nodes[0]->error == "");
        CHECK(reply->nodes[2]->error != "");
        CHECK(reply->nodes[4]->error == "");
        CHECK(std::filesystem::exists(reply->nodes[4]->path));
    }

    TEST_CASE("relays: a trace that is over makes room for the next ones") {
        const Folder folder;
        Agent lead(folder, "lead"), relay(folder, "relay"), node(folder, "node");
        for (Agent* agent : {&lead, &relay, &node}) agent->serve();
        fbs::TraceRequestT request = request_over({relay.endpoint, node.endpoint}, 5);
        request.relay_beyond = 1;
        for (std::size_t i = 0; i < 2 * kMostRelays; ++i) {
            request.name = "cap" + std::to_string(i);
            const auto reply = client_of(lead)->trace(request, {});
            REQUIRE(reply);
            CHECK(reply->nodes[2]->relay == relay.endpoint);
        }
    }

    TEST_CASE(
        "relays: a node that nobody means is a relay all the same, a lease lasts through it") {
        const Folder folder;
        Crowd crowd(folder, Milliseconds(1'500));
        for (int n = 1; n <= kPeers; n += static_cast<int>(kBehind) + 1)
            crowd.at(n).engine.no_pids_here = true;
        crowd.serve();
        // Asked while it lasts: a capture whose lease has ended is told of as one that was stopped.
        bool looked = false;
        TraceHooks hooks;
        hooks.progress = [&](const fbs::ProgressT& progress) {
            if (progress.phase != fbs::Phase::Capturing || progress.elapsed_ms < 2'500) return;
            looked = true;
            for (int n = 1; n <= kPeers; ++n)
                CHECK(crowd.at(n).engine.status().capturing == (n != Crowd::relay_of(n)));
        };
        const auto reply = client_of(crowd.at(0))->trace(crowd.request(3'500), hooks);
        REQUIRE(reply);
        CHECK(looked);
        for (int n = 1; n <= kPeers; ++n) {
            const auto& node = *reply->nodes[static_cast<std::size_t>(n)];
            CAPTURE(n);
            CHECK(node.not_meant == (n == Crowd::relay_of(n)));
            if (node.not_meant) continue;
            CHECK(node.error == "");
            CHECK(node.path != "");
            // Both epochs were measured: from one alone two clocks may have run apart by 1.75 ms.
            CHECK(node.clock->bound_ns() < 1'700'000);
        }
        CHECK(reply->duration_ns == 3'500 * kMs);
    }

    TEST_CASE("relays: more halves than the way holds at a time arrive, each once") {
        const Folder folder;
        Crowd crowd(folder);
        for (int n = 2; n <= kPeers; ++n) {
            for (std::uint64_t i = 0; i < 30'000; ++i) {
                const auto t = static_cast<std::int64_t>(i) * 1'000;
                crowd.halves[n].push_back(
                    client("worker" + std::to_string(n), "elsewhere", 1'000 + i, t, t + 900));
            }
        }
        crowd.serve();
        const auto reply = client_of(crowd.at(0))->trace(crowd.request(300), {});
        REQUIRE(reply);
        for (const auto& node : reply->nodes) CHECK(node->error == "");
        CHECK(reply->joined_replies == kCalls);
        CHECK(reply->cut == 30'000 * (kPeers - 1));
    }
}
