// Traces led over real sockets: agreed instants, clocks, errors of some nodes, and the joined result.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <fstream>

#include "schema/frame.hpp"
#include "schema/job_generated.h"
#include "traced.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
namespace fbs = ringside::fbs;
using ringside::schema::ErrorCode;

TEST_SUITE("unit") {
    TEST_CASE("trace: three skewed nodes begin at one instant and are joined in order") {
        const Folder folder;
        Agent a(folder, "a"), b(folder, "b", 1'000'000'000), c(folder, "c", 3'000'000, 50'000);
        int number = 0;
        for (Agent* agent : {&a, &b, &c}) {
            record_calls(*agent, number++, 3);
            agent->serve();
        }
        std::vector<fbs::Phase> phases;
        TraceHooks hooks;
        hooks.progress = [&](const fbs::ProgressT& progress) {
            if (phases.empty() || phases.back() != progress.phase) phases.push_back(progress.phase);
        };
        const auto reply = client_of(a)->trace(request_over({b.endpoint, c.endpoint}, 200), hooks);
        REQUIRE(reply);
        CHECK(reply->nodes.size() == 3);
        CHECK(reply->joined_requests > 80);
        CHECK(reply->joined_requests == reply->joined_replies);
        CHECK(reply->orphans == 0);
        CHECK(reply->cut <= 4);
        CHECK(reply->ambiguous == 0);
        CHECK(reply->order_violations == 0);
        CHECK(reply->verdicts.size() == 3);
        CHECK(reply->duration_ns == 200 * kMs);
        CHECK(reply->start_spread_ns < 20 * kMs);
        CHECK(phases == std::vector{fbs::Phase::Measuring, fbs::Phase::Attaching,
                                    fbs::Phase::Capturing, fbs::Phase::Draining,
                                    fbs::Phase::Joining});
        for (int n = 0; n < 3; ++n) {
            const auto& node = *reply->nodes[static_cast<std::size_t>(n)];
            CHECK(node.error.empty());
            CHECK(std::filesystem::exists(node.path));
        }
        CHECK(std::abs(reply->nodes[1]->clock->offset_ns() + 1'000'000'000) <=
              reply->nodes[1]->clock->bound_ns() + 1000);
        CHECK(beyond_bound(*reply->nodes[1]->clock, a.engine, b.engine) < 20'000);
        CHECK(beyond_bound(*reply->nodes[2]->clock, a.engine, c.engine) < 20'000);
        CHECK(reply->job_index == folder.path() + "/a/cap/job.rsj");
        CHECK(std::filesystem::exists(reply->job_index));
    }

    TEST_CASE("trace: a peer that is not there is unreachable, the others go on") {
        const Folder folder;
        Agent a(folder, "a"), b(folder, "b");
        record_calls(a, 0, 2);
        record_calls(b, 1, 2);
        a.serve();
        b.serve();
        const std::string nobody = "ipc://" + folder.path() + "/nobody.sock";
        const auto reply = client_of(a)->trace(request_over({nobody, b.endpoint}, 50), {});
        REQUIRE(reply);
        REQUIRE(reply->nodes.size() == 3);
        CHECK(reply->nodes[1]->error.find("no such socket") != std::string::npos);
        CHECK(reply->nodes[1]->path.empty());
        CHECK(reply->nodes[2]->error.empty());
        CHECK(reply->joined_requests > 10);
        REQUIRE(reply->verdicts.size() == 3);
        CHECK(reply->verdicts[1]->verdict == fbs::Verdict::Unreachable);
        CHECK(reply->verdicts[1]->command == nobody);
    }

    TEST_CASE("trace: a peer that is stopped is unreachable after a while, the others go on") {
        const Folder folder;
        Agent a(folder, "a"), b(folder, "b");  // b is bound, and nobody serves
        record_calls(a, 0, 2);
        a.serve();
        const auto reply = client_of(a)->trace(request_over({b.endpoint}, 50), {});
        REQUIRE(reply);
        CHECK(reply->nodes[1]->error.find("has not answered") != std::string::npos);
        CHECK(reply->cut > 10);
        CHECK(reply->orphans == 0);
    }

    TEST_CASE(
        "trace: two nodes of one name, a capture elsewhere: refused there, the others go on") {
        const Folder folder;
        const Folder other;
        Agent a(folder, "a"), twin(other, "a"), busy(folder, "busy");
        CaptureRequest already;
        already.id = 5;
        already.name = "other";
        REQUIRE(busy.engine.prepare(already));
        for (Agent* agent : {&a, &twin, &busy}) agent->serve();
        const auto reply =
            client_of(a)->trace(request_over({twin.endpoint, busy.endpoint}, 20), {});
        REQUIRE(reply);
        CHECK(reply->verdicts.size() == 2);
        for (const auto& verdict : reply->verdicts)
            CHECK(verdict->verdict == fbs::Verdict::Refused);
        CHECK(reply->nodes[1]->error.find("--node") != std::string::npos);
        CHECK(busy.engine.status().capturing);
    }

    TEST_CASE("trace: a leader that records nothing writes its index beneath its root alone") {
        const Folder folder;
        Agent a(folder, "a"), b(folder, "b");
        a.engine.no_pids_here = true;
        record_calls(b, 0, 2);
        a.serve();
        b.serve();
        const std::string root = folder.path() + "/a", victim = folder.path() + "/victim";
        std::filesystem::create_directories(root);
        std::filesystem::create_directories(victim);
        std::filesystem::create_directory_symlink(victim, root + "/cap");
        const auto linked = client_of(a)->trace(request_over({b.endpoint}, 50), {});
        REQUIRE(linked);
        CHECK(linked->job_index == "");
        CHECK(linked->nodes[0]->error.find("is a link") != std::string::npos);
        CHECK(std::filesystem::exists(linked->nodes[1]->path));
        CHECK(std::filesystem::is_empty(victim));
        std::filesystem::remove(root + "/cap");
        REQUIRE(client_of(a)->trace(request_over({b.endpoint}, 50), {}));
        // The one that is there stays as it is, and nobody records in vain.
        std::ofstream(root + "/cap/job.rsj") << "another's";
        const auto again = client_of(a)->trace(request_over({b.endpoint}, 600'000), {});
        REQUIRE_FALSE(again);
        CHECK(again.error().code == ErrorCode::kUsage);
        CHECK(std::filesystem::file_size(root + "/cap/job.rsj") == 9);
    }

    TEST_CASE(
        "trace: a second one meanwhile is refused and names the first; a cancel keeps what there "
        "is") {
        const Folder folder;
        Agent a(folder, "a"), b(folder, "b");
        record_calls(a, 0, 2);
        record_calls(b, 1, 2);
        a.serve();
        b.serve();
        std::atomic<bool> cancel{false};
        TraceHooks hooks;
        std::uint64_t capture_id = 0;
        hooks.progress = [&](const fbs::ProgressT& progress) {
            if (progress.phase != fbs::Phase::Capturing || cancel) return;
            capture_id = progress.capture_id;
            const auto second = client_of(a)->trace(request_over({}, 10), {});
            REQUIRE_FALSE(second);
            CHECK(second.error().code == ErrorCode::kRefused);
            CHECK(second.error().message.find(capture_name(capture_id)) != std::string::npos);
            cancel = true;
        };
        hooks.wish = [&] {
            return cancel ? TraceHooks::Wish::kCancelAndKeep : TraceHooks::Wish::kGoOn;
        };
        const auto reply = client_of(a)->trace(request_over({b.endpoint}, 600'000), hooks);
        REQUIRE(reply);
        CHECK(reply->capture_id == capture_id);
        CHECK(reply->duration_ns < 60'000 * kMs);
        CHECK(std::filesystem::exists(reply->job_index));
        CHECK_FALSE(b.engine.status().capturing);
    }

    TEST_CASE("trace: a cancel of nothing says so") {
        const Folder folder;
        Agent a(folder, "a");
        a.serve();
        const auto reply = client_of(a)->ask<fbs::CancelReplyT>(fbs::CancelRequestT{});
        REQUIRE_FALSE(reply);
        CHECK(reply.error().code == ErrorCode::kNothingMatched);
    }

    TEST_CASE(
        "trace: pids that are on one node only leave the other out; on none, nothing matched") {
        const Folder folder;
        Agent a(folder, "a"), b(folder, "b");
        a.engine.no_pids_here = true;
        a.serve();
        b.serve();
        fbs::TraceRequestT request = request_over({b.endpoint}, 20);
        request.pids = {4711};
        const auto reply = client_of(a)->trace(request, {});
        REQUIRE(reply);
        CHECK(reply->nodes[0]->not_meant);
        CHECK_FALSE(reply->nodes[1]->not_meant);
        CHECK(reply->nodes[0]->path.empty());
        CHECK(std::filesystem::exists(reply->nodes[1]->path));
        CHECK(std::filesystem::exists(reply->job_index));
        fbs::TraceRequestT none = request_over({}, 20);
        none.pids = {4711};
        none.name = "none";
        const auto nothing = client_of(a)->trace(none, {});
        REQUIRE_FALSE(nothing);
        CHECK(nothing.error().code == ErrorCode::kNothingMatched);
    }

    TEST_CASE("trace: a tcp peer, and no key here, refuses the whole") {
        const Folder folder;
        Agent a(folder, "a");
        a.serve();
        const auto reply = client_of(a)->trace(request_over({"tcp://10.0.0.1:5555"}, 20), {});
        REQUIRE_FALSE(reply);
        CHECK(reply.error().code == ErrorCode::kRefused);
        CHECK_FALSE(a.engine.status().capturing);
    }

    TEST_CASE(
        "finish: captures from the start are ended and joined; without one, nothing matched") {
        const Folder folder;
        Agent a(folder, "a"), b(folder, "b", 40'000'000);
        fbs::TraceRequestT finish;
        finish.finish = true;
        finish.peers = {b.endpoint};
        std::uint64_t id = 21;
        for (Agent* agent : {&a, &b}) {
            agent->engine.processes_to_give = {worker_process(agent == &a ? "worker0" : "worker1")};
            CaptureRequest request;
            request.id = id++;
            request.name = "run";
            REQUIRE(agent->server->service().capture_from_start(request));
        }
        a.engine.on_stop = [](FakeEngine& engine, std::uint64_t, std::uint64_t stop) {
            const auto t = static_cast<std::int64_t>(stop) - 900 * kMs;
            engine.halves_to_give = {client("worker0", "worker1", 0, t, t + kMs)};
        };
        b.engine.on_stop = [](FakeEngine& engine, std::uint64_t, std::uint64_t stop) {
            const auto t = static_cast<std::int64_t>(stop) - 900 * kMs;
            engine.halves_to_give = {server("worker1", "worker0", 0, t + 400'000, t + 500'000)};
        };
        a.serve();
        b.serve();
        const auto reply = client_of(a)->trace(finish, {});
        REQUIRE(reply);
        CHECK(reply->joined_requests == 1);
        CHECK(reply->order_violations == 0);
        CHECK(reply->job_index == folder.path() + "/a/run/job.rsj");
        // 900 ms before the only pings: the bound covers the drift that is possible.
        CHECK(reply->nodes[1]->clock->bound_ns() > 400'000);
        const auto again = client_of(a)->trace(finish, {});
        REQUIRE_FALSE(again);
        CHECK(again.error().code == ErrorCode::kNothingMatched);
    }

    TEST_CASE("finish: an agent that ends writes its capture from the start, with an index") {
        const Folder folder;
        Agent a(folder, "a");
        CaptureRequest request;
        request.id = 33;
        request.name = "run";
        REQUIRE(a.server->service().capture_from_start(request));
        a.serve();
        a.stop();
        CHECK(a.server->finish());
        CHECK(std::filesystem::exists(folder.path() + "/a/run/a.rsd"));
        CHECK(std::filesystem::exists(folder.path() + "/a/run/job.rsj"));
        CHECK_FALSE(a.engine.status().capturing);
    }

    TEST_CASE("finish: an agent that ends while it leads keeps the trace and answers") {
        const Folder folder;
        Agent a(folder, "a"), b(folder, "b");
        a.serve();
        b.serve();
        std::thread ending;
        TraceHooks hooks;
        hooks.progress = [&](const fbs::ProgressT& progress) {
            if (progress.phase != fbs::Phase::Capturing || ending.joinable()) return;
            ending = std::thread([&] {
                a.stop();
                CHECK(a.server->finish());
            });
        };
        const auto reply = client_of(a)->trace(request_over({b.endpoint}, 600'000), hooks);
        ending.join();
        REQUIRE(reply);
        CHECK(std::filesystem::exists(reply->job_index));
        CHECK_FALSE(b.engine.status().capturing);
    }

    TEST_CASE("trace: ten thousand nodes fit the request, and what is told of them the reply") {
        fbs::TraceRequestT request;
        const std::string endpoint = "tcp://rack-17-node-0042.cluster.example:20001";
        request.peers.assign(kMostPeers, endpoint);
        request.pids.assign(10'000, 1);
        CHECK(pack(1, std::move(request)).size() <= kMostRequestBytes);
        fbs::TraceReplyT reply;
        for (std::uint32_t node = 0; node < 10'000; ++node) {
            reply.nodes.push_back(std::make_unique<fbs::TraceNodeT>());
            reply.nodes.back()->name = std::to_string(node);
            for (std::uint32_t process = 0; process < 16; ++process) {
                reply.verdicts.push_back(std::make_unique<fbs::ProcessVerdictT>());
                fbs::ProcessVerdictT& verdict = *reply.verdicts.back();
                verdict.node = node;
                verdict.command = "python3 train.py";
                for (std::uint8_t source = 1; source <= 7; ++source) {
                    verdict.sources.push_back(std::make_unique<fbs::SourceT>());
                    verdict.sources.back()->id = source;
                }
            }
        }
        const MessageBytes answer = trace_answer(7, std::move(reply));
        CHECK(answer.size() < kMostReplyBytes);
        CHECK(*kind_of(answer) == fbs::Content::TraceReply);
    }

    TEST_CASE("trace: a reply that no command would take says where the trace is") {
        fbs::TraceReplyT reply;
        reply.job_index = "/x/job.rsj";
        reply.nodes.push_back(std::make_unique<fbs::TraceNodeT>());
        reply.nodes[0]->error = std::string(kMostReplyBytes, 'x');
        auto answer = unpack_message(trace_answer(7, std::move(reply)));
        REQUIRE(answer);
        CHECK(answer->id == 7);
        const auto* error = content_as<fbs::ErrorReplyT>(*answer);
        REQUIRE(error != nullptr);
        CHECK(error->message.find("/x/job.rsj") != std::string::npos);
        CHECK(error->message.find("1 nodes and 0 processes") != std::string::npos);
    }
}
