// Windows over the wire: armed, changed and ended, and traces whose nodes hold different shares of the history.
#include <doctest/doctest.h>

#include "agents.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
namespace fbs = ringside::fbs;
using ringside::schema::ErrorCode;

namespace {

constexpr std::int64_t kMilli = 1'000'000;

std::unique_ptr<Client> client_of(const Agent& agent) {
    auto client = Client::connect(agent.endpoint);
    REQUIRE(client);
    return std::move(*client);
}

fbs::TraceRequestT with_history(const Agent& peer, std::uint32_t history_ms) {
    fbs::TraceRequestT request;
    request.peers = {peer.endpoint};
    request.duration_ms = 50;
    request.name = "cap";
    request.history_ms = history_ms;
    return request;
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("armed: a window is made, shown, changed and ended") {
        const Folder folder;
        Agent agent(folder, "a");
        agent.serve();
        const auto client = client_of(agent);
        CHECK_FALSE(client->ask<fbs::StatusReplyT>(fbs::StatusRequestT{})->window);
        fbs::ArmRequestT request;
        request.keep_ms = 30'000;
        request.max_bytes = 64 << 20;
        request.pids = {5, 6};
        request.options = 1;
        const auto armed = client->ask<fbs::ArmReplyT>(request);
        REQUIRE(armed);
        CHECK(armed->node == "a");
        CHECK_FALSE(armed->changed);
        const auto status = client->ask<fbs::StatusReplyT>(fbs::StatusRequestT{});
        REQUIRE(status->window);
        CHECK(status->window->keep_ms == 30'000);
        CHECK(status->window->max_bytes == 64 << 20);
        CHECK(status->window->pids == std::vector<std::int32_t>{5, 6});
        CHECK(status->window->options == 1);
        CHECK_FALSE(status->capturing);
        CHECK(client->ask<fbs::ArmReplyT>(request)->changed);
        request.keep_ms = 0;
        CHECK(client->ask<fbs::ArmReplyT>(request).error().code == ErrorCode::kUsage);
        CHECK(client->ask<fbs::DisarmReplyT>(fbs::DisarmRequestT{})->window);
        CHECK_FALSE(client->ask<fbs::DisarmReplyT>(fbs::DisarmRequestT{})->window);
    }

    TEST_CASE("armed: each node's share of the history is told, and is no spread of their starts") {
        const Folder folder;
        Agent a(folder, "a"), b(folder, "b", 1'000'000'000);
        a.engine.window_holds_ns = 10'000 * kMilli;
        b.engine.window_holds_ns = 700 * kMilli;
        for (Agent* agent : {&a, &b}) {
            agent->serve();
            REQUIRE(client_of(*agent)->ask<fbs::ArmReplyT>(fbs::ArmRequestT{}));
        }
        const auto reply = client_of(a)->trace(with_history(b, 2000), {});
        REQUIRE_MESSAGE(reply, (reply ? "" : reply.error().message));
        REQUIRE(reply->nodes.size() == 2);
        CHECK(reply->nodes[0]->history_ns == 2000 * kMilli);
        CHECK(reply->nodes[0]->window_note.empty());
        CHECK(reply->nodes[1]->history_ns == 700 * kMilli);
        CHECK(reply->nodes[1]->window_note == "of more: armed then");
        CHECK(reply->start_spread_ns < 20 * kMilli);
        CHECK(reply->duration_ns >= 2050 * kMilli);
        CHECK(reply->duration_ns < 2500 * kMilli);
    }

    TEST_CASE(
        "armed: history where the leader is not armed is refused; a peer that is not says so") {
        const Folder folder;
        Agent a(folder, "a"), b(folder, "b");
        for (Agent* agent : {&a, &b}) agent->serve();
        const auto refused = client_of(a)->trace(with_history(b, 2000), {});
        REQUIRE_FALSE(refused);
        CHECK(refused.error().code == ErrorCode::kRefused);
        REQUIRE(client_of(a)->ask<fbs::ArmReplyT>(fbs::ArmRequestT{}));
        const auto reply = client_of(a)->trace(with_history(b, 2000), {});
        REQUIRE(reply);
        CHECK(reply->nodes[0]->error.empty());
        CHECK(reply->nodes[1]->error.find("no window is armed on node b") != std::string::npos);
    }
}
