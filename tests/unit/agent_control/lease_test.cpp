// How long a capture goes on whose leader is not heard of, who renews that, and what is told to whoever asks for its end later.
#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "agent/control/lease.hpp"
#include "by_hand.hpp"
#include "traced.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
namespace fbs = ringside::fbs;

namespace {

using Clock = std::chrono::steady_clock;
constexpr Milliseconds kLease{1'000};
constexpr std::uint64_t kCapture = 9;

template <class Request>
fbs::MessageT message(Request request) {
    auto unpacked = unpack_message(pack(1, std::move(request)));
    REQUIRE(unpacked);
    return std::move(*unpacked);
}

fbs::MessageT ping(std::uint64_t capture_id) {
    fbs::PingRequestT request;
    request.capture_id = capture_id;
    return message(request);
}

/// A lease of ten seconds that is looked at each second.
class Watched {
public:
    Watched() { lease.set_length(Milliseconds(10'000)); }
    SteadyTime at(int second) const { return begun_ + std::chrono::seconds(second); }
    void hear(const std::string& who, fbs::MessageT message) {
        lease.heard(who, message, at(second_));
    }
    /// @return whether the capture is to end at that second, or has been before
    bool ends_by(int second) {
        bool ends = false;
        while (second_ < second) ends |= lease.run_out(at(++second_)).has_value();
        return ends;
    }
    void stopped_until(int second) {
        second_ = second;
        CHECK_FALSE(lease.run_out(at(second)));
    }

    Lease lease;

private:
    const SteadyTime begun_ = Clock::now();
    int second_ = 0;
};

/// Begins a capture in the way of a leader.
void begin(ByHand& leader, const Agent& agent) {
    fbs::PrepareRequestT prepare;
    prepare.capture_id = kCapture;
    prepare.name = "cap";
    leader.say(std::move(prepare));
    auto prepared = leader.hear();
    REQUIRE(content_as<fbs::PrepareReplyT>(prepared) != nullptr);
    fbs::BeginRequestT order;
    order.capture_id = kCapture;
    order.start_node_ns = agent.engine.node_now().value;
    leader.say(order);
    auto begun = leader.hear();
    REQUIRE(content_as<fbs::BeginReplyT>(begun) != nullptr);
}

fbs::StopReplyT stop(ByHand& leader, std::int64_t node_ns, bool discard = false) {
    fbs::StopRequestT order;
    order.capture_id = kCapture;
    order.stop_node_ns = node_ns;
    order.discard = discard;
    leader.say(order);
    auto stopped = leader.hear();
    auto* reply = content_as<fbs::StopReplyT>(stopped);
    REQUIRE(reply != nullptr);
    return std::move(*reply);
}

bool ends(const Agent& agent) {
    const auto limit = Clock::now() + Milliseconds(20'000);
    while (agent.engine.status().capturing && Clock::now() < limit)
        std::this_thread::sleep_for(Milliseconds(5));
    return !agent.engine.status().capturing;
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("lease: whoever names the capture renews it, and whoever did so last by anything") {
        Watched watched;
        CHECK_FALSE(watched.ends_by(100));
        watched.lease.give("first", kCapture, watched.at(100));
        CHECK_FALSE(watched.ends_by(109));
        watched.hear("first", ping(0));
        CHECK_FALSE(watched.ends_by(118));
        watched.hear("second", ping(0));
        watched.hear("second", ping(kCapture + 1));
        CHECK(watched.ends_by(119));
        watched.hear("second", ping(kCapture));
        CHECK_FALSE(watched.ends_by(128));
        watched.hear("first", ping(0));
        CHECK(watched.ends_by(129));
        watched.hear("second", ping(0));
        CHECK_FALSE(watched.ends_by(138));
        fbs::BeginRequestT order;
        order.capture_id = kCapture;
        watched.hear("third", message(order));
        CHECK_FALSE(watched.ends_by(147));
        CHECK(watched.ends_by(148));
        watched.lease.over();
        CHECK_FALSE(watched.ends_by(200));
    }

    TEST_CASE("lease: what has run out is told again, and not at each look") {
        Watched watched;
        watched.lease.give("first", kCapture, watched.at(0));
        CHECK(watched.ends_by(10));
        CHECK_FALSE(watched.lease.run_out(watched.at(10) + Milliseconds(1)));
        CHECK(watched.lease.run_out(watched.at(10) + Milliseconds(200)) == kCapture);
    }

    TEST_CASE("lease: the time that this agent was stopped is no silence of its leader's") {
        Watched watched;
        watched.lease.give("first", kCapture, watched.at(0));
        CHECK_FALSE(watched.ends_by(5));
        watched.stopped_until(1'000);
        CHECK_FALSE(watched.ends_by(1'003));
        CHECK(watched.ends_by(1'004));
    }

    TEST_CASE("lease: a leader whose connection is lost and made anew goes on leading") {
        const Folder folder;
        Agent agent(folder, "a", 0, 0, kLease);
        agent.serve();
        std::optional<ByHand> leader(agent.endpoint);
        begin(*leader, agent);
        leader.emplace(agent.endpoint);
        const auto until = Clock::now() + 3 * kLease;
        while (Clock::now() < until) {
            fbs::PingRequestT request;
            request.capture_id = kCapture;
            leader->say(request);
            (void)leader->hear();
            std::this_thread::sleep_for(kLease / 10);
        }
        CHECK(agent.engine.status().capturing);
        const auto whole = stop(*leader, agent.engine.node_now().value);
        CHECK(whole.early_ns == 0);
        CHECK(whole.complete);
        CHECK(whole.error == "");
    }

    TEST_CASE("lease: who asks for the end of a capture that has ended by itself is told so") {
        const Folder folder;
        Agent agent(folder, "a", 0, 0, kLease);
        agent.serve();
        ByHand leader(agent.endpoint);
        begin(leader, agent);
        const std::int64_t before = agent.engine.node_now().value;
        CHECK(ends(agent));
        // An end that lay before it ended: what was asked for is in the dump.
        CHECK(stop(leader, before).early_ns == 0);
        const std::int64_t later = agent.engine.node_now().value + 1'000 * kMs;
        const auto early = stop(leader, later);
        CHECK(early.early_ns >= 1'000 * kMs);
        CHECK(early.early_ns < later - before);
        CHECK(early.early_cause == "its leader had not been heard of for 1000 ms");
        CHECK_FALSE(early.complete);
        CHECK(early.error.find(early.early_cause) != std::string::npos);
        CHECK(std::filesystem::exists(early.path));
        // A trace that was cancelled leaves no dump, this one's neither.
        CHECK(stop(leader, later, true).path == "");
        CHECK_FALSE(std::filesystem::exists(early.path));
    }

    TEST_CASE("lease: where too much waits to be done the capture ends when there is room again") {
        const Folder folder;
        Agent agent(folder, "a", 0, 0, kLease);
        std::promise<void> let_go;
        agent.engine.on_arm = [gone = let_go.get_future().share()] { gone.wait(); };
        agent.serve();
        ByHand leader(agent.endpoint), others(agent.endpoint);
        begin(leader, agent);
        fbs::ArmRequestT arm;
        arm.keep_ms = 1'000;
        std::string refused;
        for (int i = 0; i < 20; ++i) {
            others.say(arm);
            std::this_thread::sleep_for(Milliseconds(1));
        }
        auto full = others.hear();
        if (const auto* error = content_as<fbs::ErrorReplyT>(full)) refused = error->message;
        CHECK(refused.find("too many requests of yours") != std::string::npos);
        std::this_thread::sleep_for(2 * kLease);
        CHECK(agent.engine.status().capturing);
        let_go.set_value();
        CHECK(ends(agent));
        CHECK(stop(leader, agent.engine.node_now().value).early_ns > 0);
    }

    TEST_CASE("lease: what a capture that ended early has joined is told while the next one runs") {
        const Folder folder;
        Agent agent(folder, "a");
        NodeService& service = agent.server->service();
        agent.engine.halves_to_give.resize(3);
        fbs::PrepareRequestT prepare;
        prepare.capture_id = kCapture;
        prepare.name = "cap";
        REQUIRE(service.prepare(prepare));
        REQUIRE(service.end_early(kCapture, "a test wants it"));
        agent.engine.halves_to_give.clear();
        prepare.capture_id = kCapture + 1;
        prepare.name = "next";
        REQUIRE(service.prepare(prepare));
        fbs::StopRequestT order;
        order.capture_id = kCapture;
        order.stop_node_ns = agent.engine.node_now().value;
        const auto stopped = service.stop(order);
        REQUIRE(stopped);
        CHECK(stopped->halves_count == 3);
        CHECK(service.all_halves(kCapture).size() == 3);
    }

    TEST_CASE("trace: a node whose capture ended before the trace did has an error, says why") {
        const Folder folder;
        Agent lead(folder, "lead"), short_lived(folder, "short"), older(folder, "older"),
            whole(folder, "whole");
        Agent* const all[] = {&lead, &short_lived, &older, &whole};
        for (int n = 0; n < 4; ++n) record_calls(*all[n], n, 4);
        for (Agent* agent : all) agent->serve();
        older.engine.ends_early_ns = 1'200 * kMs;
        fbs::TraceRequestT request =
            request_over({short_lived.endpoint, older.endpoint, whole.endpoint}, 1'500);
        TraceHooks hooks;
        bool ended = false;
        hooks.progress = [&](const fbs::ProgressT& progress) {
            if (progress.phase != fbs::Phase::Capturing || std::exchange(ended, true)) return;
            CHECK(short_lived.server->service().end_early(progress.capture_id, "a test wants it"));
        };
        const auto reply = client_of(lead)->trace(request, hooks);
        REQUIRE(reply);
        REQUIRE(ended);
        CHECK(reply->nodes[0]->error == "");
        CHECK(reply->nodes[1]->error.find("a test wants it") != std::string::npos);
        CHECK(reply->nodes[2]->error.find("does not tell") != std::string::npos);
        CHECK(reply->nodes[3]->error == "");
        for (const auto& process : reply->verdicts) {
            CAPTURE(process->reason);
            CHECK(process->verdict == fbs::Verdict::Captured);
            const bool told = process->reason.rfind("not its last ", 0) == 0;
            CHECK(told == (process->node == 1 || process->node == 2));
        }
        CHECK(reply->joined_replies > 0);
    }
}
