// Traces by iterations: when the leader ends them, what it asks of its nodes, what it says of those who miss some.
#include <doctest/doctest.h>

#include <filesystem>
#include <limits>

#include "agent/control/iteration_wait.hpp"
#include "agents.hpp"
#include "old_agent.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
namespace fbs = ringside::fbs;
using ringside::schema::ErrorCode;
using ringside::schema::kNsPerMillisecond;

namespace {

constexpr std::int64_t kSecondNs = 1000 * kNsPerMillisecond;

fbs::IterationsReplyT answer(std::uint32_t done, std::uint32_t under_way, std::uint32_t none,
                             std::uint32_t ended = 0, std::int64_t slowest_ns = 0) {
    fbs::IterationsReplyT reply;
    reply.done = done;
    reply.under_way = under_way;
    reply.none = none;
    reply.ended = ended;
    reply.slowest_ns = slowest_ns;
    return reply;
}

ProcessReport process_with(int pid, const IterationReport& had, Fate fate = Fate::kRunning) {
    ProcessReport report;
    report.pid = pid;
    report.executable = "/usr/bin/python3";
    report.fate = fate;
    report.events = 10;
    report.iterations = had;
    return report;
}

fbs::TraceRequestT request_for(std::uint32_t iterations, std::uint32_t timeout_ms) {
    fbs::TraceRequestT request;
    request.name = "cap";
    request.iterations = iterations;
    request.timeout_ms = timeout_ms;
    return request;
}

Result<fbs::TraceReplyT> traced(const Agent& agent, const fbs::TraceRequestT& request,
                                const TraceHooks& hooks = {}) {
    auto client = Client::connect(agent.endpoint);
    REQUIRE(client);
    return (*client)->trace(request, hooks);
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("iterations: over when all who have shown a boundary are done or have ended") {
        CHECK_FALSE(iterations_over(answer(0, 0, 0), 100 * kSecondNs));
        CHECK_FALSE(iterations_over(answer(5, 1, 0), 100 * kSecondNs));
        CHECK(iterations_over(answer(5, 0, 0), 0));
        CHECK(iterations_over(answer(5, 0, 0, 1), 0));
        CHECK(iterations_over(answer(0, 0, 0, 1), 0));
    }

    TEST_CASE("iterations: who has shown none is waited for twice the slowest, a second at least") {
        CHECK_FALSE(iterations_over(answer(0, 0, 1), 100 * kSecondNs));
        CHECK_FALSE(iterations_over(answer(0, 0, 1, 1), 100 * kSecondNs));
        const auto quick = answer(3, 0, 1, 0, kSecondNs / 10);
        CHECK_FALSE(iterations_over(quick, kSecondNs));
        CHECK(iterations_over(quick, kSecondNs + kSecondNs / 10));
        const auto slow = answer(3, 0, 1, 0, 10 * kSecondNs);
        CHECK_FALSE(iterations_over(slow, 19 * kSecondNs));
        CHECK(iterations_over(slow, 20 * kSecondNs));
    }

    TEST_CASE("iterations: nodes add up; the text tells the slowest") {
        fbs::IterationsReplyT all;
        CHECK(iterations_text(all, 5) == "no iteration yet");
        add_progress(all, answer(1, 0, 2, 0, 7));
        CHECK(iterations_text(all, 5) == "iterations 5 of 5 in 1 process");
        auto behind = answer(0, 2, 0, 1, 3);
        behind.least = 3;
        add_progress(all, behind);
        behind.least = 4;
        add_progress(all, behind);
        CHECK(all.none == 2);
        CHECK(all.slowest_ns == 7);
        CHECK(iterations_text(all, 5) == "iterations 3 of 5 in 5 processes");
    }

    TEST_CASE("iterations: a node's word on time is believed up to a day") {
        fbs::IterationsReplyT all;
        add_progress(all, answer(1, 0, 1, 0, std::numeric_limits<std::int64_t>::max()));
        add_progress(all, answer(1, 0, 1, 0, std::numeric_limits<std::int64_t>::min()));
        CHECK(all.slowest_ns == 24 * 3600 * kSecondNs);
        CHECK_FALSE(iterations_over(all, kSecondNs));
    }

    TEST_CASE("trace by iterations: it ends when all nodes are done, and passes the wish on") {
        const Folder folder;
        Agent a(folder, "a"), b(folder, "b", 40'000'000);
        IterationProgress done, behind;
        done.done = 1;
        behind.under_way = 1;
        behind.least = 1;
        a.engine.iterations_to_tell = {done};
        b.engine.iterations_to_tell = {behind, behind, done};
        a.engine.processes_to_give = {process_with(1, {"step", 2, 2, 7, 10, 20, false})};
        b.engine.processes_to_give = {process_with(2, {"", 2, 0, 0, 10, 20, true})};
        a.serve();
        b.serve();
        fbs::TraceRequestT request = request_for(2, 600'000);
        request.peers = {b.endpoint};
        request.start_roundup = 10;
        request.iterations_of = "step";
        const auto reply = traced(a, request);
        REQUIRE(reply);
        for (Agent* agent : {&a, &b}) {
            CHECK(agent->engine.iterations_asked.count == 2);
            CHECK(agent->engine.iterations_asked.roundup == 10);
            CHECK(agent->engine.iterations_asked.name == "step");
        }
        CHECK(reply->duration_ns > 100 * kNsPerMillisecond);
        REQUIRE(reply->verdicts.size() == 2);
        REQUIRE(reply->verdicts[0]->iterations);
        CHECK(reply->verdicts[0]->iterations->first == 7);
        CHECK(reply->verdicts[0]->reason == "");
        CHECK(reply->verdicts[1]->iterations->beside);
        CHECK(reply->verdicts[1]->reason == "");
    }

    TEST_CASE("trace by iterations: the timeout ends it, and who misses some says so") {
        const Folder folder;
        Agent a(folder, "a");
        IterationProgress behind;
        behind.under_way = 1;
        a.engine.iterations_to_tell = {behind};
        a.engine.processes_to_give = {
            process_with(1, {"step", 5, 3, 1, 10, 20, false}),
            process_with(2, {"step", 5, 4, 1, 10, 20, false}, Fate::kExited),
            process_with(3, {"", 5, 0, 0, 10, 20, false})};
        a.serve();
        const auto reply = traced(a, request_for(5, 150));
        REQUIRE(reply);
        CHECK(reply->duration_ns >= 150 * kNsPerMillisecond);
        CHECK(reply->verdicts.at(0)->reason == "3 of 5 iterations of step until the timeout");
        CHECK(reply->verdicts.at(1)->reason == "4 of 5 iterations of step until it ended");
        CHECK(reply->verdicts.at(2)->reason.find("no iteration seen") == 0);
        CHECK(std::filesystem::exists(reply->job_index));
    }

    TEST_CASE("trace by iterations: a node that can't tell how far it is stays in the capture") {
        const Folder folder;
        Agent a(folder, "a"), b(folder, "b");
        IterationProgress done;
        done.done = 1;
        a.engine.iterations_to_tell = {done};
        b.engine.iterations_to_tell = {done};
        b.engine.no_iterations_told = true;
        b.engine.processes_to_give = {process_with(2, {"step", 2, 2, 7, 10, 20, false})};
        a.serve();
        b.serve();
        fbs::TraceRequestT request = request_for(2, 600'000);
        request.peers = {b.endpoint};
        const auto reply = traced(a, request);
        REQUIRE(reply);
        CHECK(reply->nodes.at(1)->error == "");
        CHECK(reply->nodes.at(1)->path != "");
        CHECK_FALSE(b.engine.status().capturing);
    }

    TEST_CASE("trace by iterations: a node that was cut short is not waited for") {
        const Folder folder;
        Agent a(folder, "a"), b(folder, "b");
        IterationProgress done, behind;
        done.done = 1;
        behind.under_way = 1;
        behind.least = 3;
        a.engine.iterations_to_tell = {done};
        b.engine.iterations_to_tell = {behind};
        b.engine.processes_to_give = {process_with(2, {"step", 5, 3, 1, 10, 20, false}),
                                      process_with(3, {"", 5, 0, 0, 10, 20, true})};
        a.serve();
        b.serve();
        fbs::TraceRequestT request = request_for(5, 600'000);
        request.peers = {b.endpoint};
        bool cut = false;
        TraceHooks hooks;
        hooks.progress = [&](const fbs::ProgressT& progress) {
            if (cut || !progress.text.starts_with("iterations 3 of 5")) return;
            cut = true;
            CHECK(b.server->service().end_early(progress.capture_id, "a test wants it"));
        };
        const auto reply = traced(a, request, hooks);
        REQUIRE(reply);
        CHECK(cut);
        CHECK(reply->nodes.at(1)->error.find("a test wants it") != std::string::npos);
        CHECK(reply->verdicts.at(0)->reason.find("3 of 5 iterations of step") != std::string::npos);
    }

    TEST_CASE(
        "trace by iterations: over when those that were waited for are gone with their node") {
        const Folder folder;
        Agent a(folder, "a"), b(folder, "b");
        a.engine.no_pids_here = true;
        IterationProgress behind;
        behind.under_way = 1;
        behind.least = 3;
        b.engine.iterations_to_tell = {behind};
        b.engine.processes_to_give = {process_with(2, {"step", 5, 3, 1, 10, 20, false})};
        a.serve();
        b.serve();
        fbs::TraceRequestT request = request_for(5, 600'000);
        request.peers = {b.endpoint};
        TraceHooks hooks;
        hooks.progress = [&](const fbs::ProgressT& progress) {
            if (!progress.text.starts_with("iterations 3 of 5") || !b.server) return;
            b.stop();
            b.server.reset();
        };
        const auto from = std::chrono::steady_clock::now();
        const auto reply = traced(a, request, hooks);
        CHECK(std::chrono::steady_clock::now() - from < Milliseconds(20'000));
        REQUIRE(reply);
        CHECK_FALSE(b.server);
        CHECK(reply->nodes.at(1)->error != "");
    }

    TEST_CASE("iterations: of a capture that has ended its node tells how long the slowest took") {
        const Folder folder;
        Agent a(folder, "a");
        a.engine.window_holds_ns = kSecondNs;
        NodeService& service = a.server->service();
        fbs::ArmRequestT arm;
        arm.keep_ms = 10'000;
        REQUIRE(service.arm(arm));
        fbs::PrepareRequestT prepare;
        prepare.capture_id = 9;
        prepare.history_ms = 1'000;
        REQUIRE(service.prepare(prepare));
        fbs::BeginRequestT order;
        order.capture_id = 9;
        order.start_node_ns = a.engine.node_now().value;
        REQUIRE(service.begin(order));
        const auto after = [&](std::int64_t ms) {
            return a.engine.ticks_at_node({order.start_node_ns + ms * kNsPerMillisecond});
        };
        a.engine.processes_to_give = {
            process_with(2, {"step", 5, 5, 1, after(1), after(40), false}),
            process_with(3, {"step", 5, 5, 1, after(1), after(70), false}),
            process_with(4, {"step", 5, 3, 1, after(1), after(90), false})};
        REQUIRE(service.end_early(9, "a test wants it"));
        fbs::IterationsRequestT question;
        question.capture_id = 9;
        const auto told = service.iterations(question);
        REQUIRE(told);
        CHECK(told->done == 2);
        CHECK(told->ended == 1);
        CHECK(double(told->slowest_ns) == doctest::Approx(70e6).epsilon(0.001));
    }

    TEST_CASE("trace by iterations: Ctrl-C ends it early, too") {
        const Folder folder;
        Agent a(folder, "a");
        IterationProgress behind;
        behind.under_way = 1;
        behind.least = 3;
        a.engine.iterations_to_tell = {behind};
        a.engine.processes_to_give = {process_with(1, {"step", 5, 3, 1, 10, 20, false})};
        a.serve();
        std::string text;
        TraceHooks hooks;
        hooks.progress = [&](const fbs::ProgressT& progress) {
            if (progress.phase == fbs::Phase::Capturing) text = progress.text;
        };
        hooks.wish = [&] {
            return text.starts_with("iterations") ? TraceHooks::Wish::kCancelAndKeep
                                                  : TraceHooks::Wish::kGoOn;
        };
        const auto reply = traced(a, request_for(5, 600'000), hooks);
        REQUIRE(reply);
        CHECK(text == "iterations 3 of 5 in 1 process");
        CHECK(reply->verdicts.at(0)->reason ==
              "3 of 5 iterations of step until the trace was ended");
    }

    TEST_CASE(
        "trace by iterations: an agent that can't count them is refused, not asked for a time") {
        const Folder folder;
        Agent a(folder, "a");
        OldAgent old(folder.path() + "/old.sock");
        IterationProgress done;
        done.done = 1;
        a.engine.iterations_to_tell = {done};
        a.serve();
        fbs::TraceRequestT request = request_for(2, 600'000);
        request.peers = {old.endpoint};
        const auto reply = traced(a, request);
        REQUIRE(reply);
        REQUIRE(reply->nodes.size() == 2);
        CHECK(reply->nodes[0]->error == "");
        CHECK(reply->nodes[1]->error.find("install the same version") != std::string::npos);
        CHECK(reply->verdicts.at(0)->verdict == fbs::Verdict::Refused);
        CHECK(old.orders == 0);
    }

    TEST_CASE("trace by iterations: not with history, not for a finish, not too many") {
        const Folder folder;
        Agent a(folder, "a");
        a.serve();
        fbs::TraceRequestT history = request_for(5, 100), finish = history;
        history.history_ms = 100;
        finish.finish = true;
        for (const fbs::TraceRequestT& request :
             {history, finish, request_for(kMostIterations + 1, 100)}) {
            const auto reply = traced(a, request);
            REQUIRE_FALSE(reply);
            CHECK(reply.error().code == ErrorCode::kUsage);
        }
        CHECK_FALSE(a.engine.status().capturing);
    }
}
