// What becomes of a trace that is thrown away, at whatever time, and of one that there can be no index of.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "traced.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
namespace fbs = ringside::fbs;
using ringside::schema::ErrorCode;

TEST_SUITE("unit") {
    TEST_CASE("trace: a cancel that keeps nothing leaves nothing on any node") {
        const Folder folder;
        Agent a(folder, "a"), b(folder, "b");
        a.serve();
        b.serve();
        std::atomic<bool> on{false};
        TraceHooks hooks;
        hooks.progress = [&](const fbs::ProgressT& progress) {
            on = progress.phase == fbs::Phase::Capturing;
        };
        hooks.wish = [&] { return on ? TraceHooks::Wish::kCancel : TraceHooks::Wish::kGoOn; };
        const auto reply = client_of(a)->trace(request_over({b.endpoint}, 600'000), hooks);
        REQUIRE_FALSE(reply);
        CHECK(reply.error().code == ErrorCode::kRefused);
        CHECK_FALSE(std::filesystem::exists(folder.path() + "/a/cap"));
        CHECK_FALSE(std::filesystem::exists(folder.path() + "/b/cap"));
        CHECK_FALSE(b.engine.status().capturing);
    }

    TEST_CASE("trace: one that is given up while its dumps are written leaves nothing either") {
        const Folder folder;
        Agent a(folder, "a"), b(folder, "b");
        std::atomic<int> given_up{0};
        std::atomic<bool> on{false}, stopping{false};
        a.engine.on_stop = [&](FakeEngine&, std::uint64_t, std::uint64_t) {
            stopping = true;
            // Asked for its wish again, the client has said the one before.
            const auto limit = std::chrono::steady_clock::now() + Milliseconds(8'000);
            while (given_up < 2 && std::chrono::steady_clock::now() < limit)
                std::this_thread::sleep_for(Milliseconds(1));
        };
        a.serve();
        b.serve();
        TraceHooks hooks;
        hooks.progress = [&](const fbs::ProgressT& progress) {
            on = on || progress.phase == fbs::Phase::Capturing;
        };
        hooks.wish = [&] {
            if (!on) return TraceHooks::Wish::kGoOn;
            if (!stopping) return TraceHooks::Wish::kCancelAndKeep;
            ++given_up;
            return TraceHooks::Wish::kCancel;
        };
        const auto reply = client_of(a)->trace(request_over({b.endpoint}, 600'000), hooks);
        CHECK(given_up >= 2);
        REQUIRE_FALSE(reply);
        CHECK(reply.error().message.find("nothing was kept") != std::string::npos);
        CHECK_FALSE(std::filesystem::exists(folder.path() + "/a/cap"));
        CHECK_FALSE(std::filesystem::exists(folder.path() + "/b/cap"));
    }

    TEST_CASE("trace: thrown away at whatever time, it is gone or it is said to be kept") {
        const Folder folder;
        Agent a(folder, "a"), b(folder, "b");
        a.serve();
        b.serve();
        for (const fbs::Phase when :
             {fbs::Phase::Measuring, fbs::Phase::Attaching, fbs::Phase::Capturing,
              fbs::Phase::Draining, fbs::Phase::Joining}) {
            CAPTURE(fbs::EnumNamePhase(when));
            bool asked = false, gone = false;
            TraceHooks hooks;
            hooks.progress = [&](const fbs::ProgressT& progress) {
                if (progress.phase != when || std::exchange(asked, true)) return;
                fbs::CancelRequestT cancel;
                cancel.keep = false;
                gone = static_cast<bool>(client_of(a)->ask<fbs::CancelReplyT>(cancel));
            };
            const auto reply = client_of(a)->trace(request_over({b.endpoint}, 100), hooks);
            REQUIRE(asked);
            CHECK(static_cast<bool>(reply) != gone);
            for (const char* node : {"/a", "/b"}) {
                const std::string folder_there = folder.path() + node + "/cap";
                CHECK(std::filesystem::exists(folder_there) != gone);
                std::filesystem::remove_all(folder_there);
            }
        }
    }

    TEST_CASE("trace: where there can be no index the dumps are told of all the same") {
        const Folder folder;
        EngineOptions nowhere = engine_options(folder, "a");
        std::ofstream(folder.path() + "/file") << "no folder";
        nowhere.output_root = folder.path() + "/file/root";
        Agent a(nowhere, {ipc_endpoint(folder, "a"), "test"}), b(folder, "b");
        a.engine.no_pids_here = true;
        a.serve();
        b.serve();
        const auto reply = client_of(a)->trace(request_over({b.endpoint}, 20), {});
        REQUIRE(reply);
        CHECK(reply->job_index == "");
        CHECK(reply->nodes[0]->error.find("file/root") != std::string::npos);
        CHECK(reply->nodes[1]->error == "");
        CHECK(std::filesystem::exists(reply->nodes[1]->path));
    }
}
