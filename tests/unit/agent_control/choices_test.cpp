// Whom and when a trace means: what is nowhere is said, a start is waited for, and who leads is known.
#include <doctest/doctest.h>

#include "agent/control/missing.hpp"
#include "agents.hpp"
#include "old_agent.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
namespace fbs = ringside::fbs;
using ringside::schema::ErrorCode;

namespace {

fbs::TraceReplyT reply_with(int pid, int host_pid, int rank, const std::string& executable) {
    fbs::TraceReplyT reply;
    reply.nodes.push_back(std::make_unique<fbs::TraceNodeT>());
    reply.verdicts.push_back(std::make_unique<fbs::ProcessVerdictT>());
    reply.verdicts[0]->pid = pid;
    reply.verdicts[0]->host_pid = host_pid;
    reply.verdicts[0]->rank = rank;
    reply.verdicts[0]->executable = executable;
    return reply;
}

std::unique_ptr<Client> client_of(const Agent& agent) {
    auto client = Client::connect(agent.endpoint);
    REQUIRE(client);
    return std::move(*client);
}

fbs::TraceRequestT request_in(const Agent& agent, std::int64_t ahead_ns) {
    fbs::TraceRequestT request;
    request.duration_ms = 20;
    request.name = "cap";
    request.start_time_ns = agent.engine.node_now().value + ahead_ns;
    return request;
}

constexpr std::int64_t kSecond = 1'000'000'000;

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("missing: a pid, a rank and an executable that are nowhere are told, each once") {
        fbs::TraceRequestT request;
        request.pids = {1, 4001, 9};
        request.ranks = {0, 3};
        request.executables = {"python3", "ruby"};
        fbs::TraceReplyT reply = reply_with(1, 4001, 0, "/usr/bin/python3");
        add_missing(request, reply);
        REQUIRE(reply.verdicts.size() == 4);
        CHECK(reply.verdicts[1]->pid == 9);
        CHECK(reply.verdicts[2]->rank == 3);
        CHECK(reply.verdicts[3]->command == "ruby");
        for (std::size_t i = 1; i < 4; ++i) {
            CHECK(reply.verdicts[i]->verdict == fbs::Verdict::NotInjected);
            CHECK(reply.verdicts[i]->node == 1);
        }
    }

    TEST_CASE("missing: where a limit has left some out, nobody knows who is missing") {
        fbs::TraceRequestT request;
        request.ranks = {3};
        fbs::TraceReplyT reply = reply_with(1, 1, 0, "");
        reply.nodes[0]->left_out = 1;
        add_missing(request, reply);
        CHECK(reply.verdicts.size() == 1);
    }

    TEST_CASE("missing: where a node was not reached, who is missing may be there") {
        fbs::TraceRequestT request;
        request.ranks = {3};
        fbs::TraceReplyT reply = reply_with(1, 1, 0, "");
        reply.nodes[0]->error = "it does not answer";
        add_missing(request, reply);
        CHECK(reply.verdicts.size() == 1);
        reply.nodes[0]->not_meant = true;
        add_missing(request, reply);
        CHECK(reply.verdicts.size() == 2);
    }

    TEST_CASE(
        "trace: an older agent, which would capture everybody, is refused where some are meant") {
        const Folder folder;
        Agent a(folder, "a");
        OldAgent old(folder.path() + "/old.sock");
        a.serve();
        fbs::TraceRequestT request;
        request.duration_ms = 20;
        request.peers = {old.endpoint};
        request.limit = 1;
        SUBCASE("by a limit") {}
        SUBCASE("by rank") {
            request.limit = 0;
            request.ranks = {0};
        }
        SUBCASE("by executable") {
            request.limit = 0;
            request.executables = {"python3"};
        }
        const auto reply = client_of(a)->trace(request, {});
        REQUIRE(reply);
        CHECK(reply->nodes.at(1)->error.find("install the same version") != std::string::npos);
        CHECK(old.orders == 0);
    }

    TEST_CASE("trace: a start in the future is waited for, and all begin then") {
        const Folder folder;
        Agent a(folder, "a"), b(folder, "b", 500'000'000);
        a.serve();
        b.serve();
        fbs::TraceRequestT request = request_in(a, 3'400'000'000);
        request.peers = {b.endpoint};
        std::uint64_t led = 0;
        TraceHooks hooks;
        bool waited = false;
        hooks.progress = [&](const fbs::ProgressT& told) {
            if (told.phase != fbs::Phase::Waiting) return;
            waited = true;
            CHECK(told.total_ms > 3300);
            CHECK(told.total_ms <= 3400);
            led = client_of(a)->ask<fbs::StatusReplyT>(fbs::StatusRequestT{})->leading;
        };
        const auto reply = client_of(a)->trace(request, hooks);
        REQUIRE(reply);
        CHECK(waited);
        CHECK(led == reply->capture_id);
        CHECK(a.engine.node_now().value >= request.start_time_ns);
        CHECK(reply->duration_ns == 20'000'000);
        CHECK(reply->start_spread_ns < 20'000'000);
        CHECK(client_of(a)->ask<fbs::StatusReplyT>(fbs::StatusRequestT{})->leading == 0);
    }

    TEST_CASE(
        "trace: a start that is past or two hours ahead is a usage error; cancelled, none begins") {
        const Folder folder;
        Agent a(folder, "a");
        a.serve();
        for (const std::int64_t ahead : {-kSecond, 7200 * kSecond}) {
            const auto reply = client_of(a)->trace(request_in(a, ahead), {});
            REQUIRE_FALSE(reply);
            CHECK(reply.error().code == ErrorCode::kUsage);
        }
        TraceHooks hooks;
        hooks.wish = [] { return TraceHooks::Wish::kCancelAndKeep; };
        const auto reply = client_of(a)->trace(request_in(a, 3000 * kSecond), hooks);
        REQUIRE_FALSE(reply);
        CHECK(reply.error().message.find("before it began") != std::string::npos);
        CHECK_FALSE(a.engine.status().capturing);
    }
}
