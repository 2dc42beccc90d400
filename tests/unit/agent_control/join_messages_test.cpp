// Messages in the join: calls that nobody answers, whose receive may be long in coming.
#include <doctest/doctest.h>

#include <algorithm>

#include "agent/correlate/join.hpp"
#include "halves.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
using ringside::schema::RpcStatus;

namespace {

constexpr std::uint32_t kSender = 0;
constexpr std::uint32_t kReceiver = 1;

Half sent(std::uint64_t number, std::int64_t begin_ticks, std::int64_t end_ticks) {
    Half half = client("rank 0", "rank 1", number, begin_ticks, end_ticks);
    half.status = RpcStatus::kSent;
    return half;
}

Half received(std::uint64_t number, std::int64_t ticks) {
    return server("rank 1", "rank 0", number, ticks, ticks);
}

/// Rank 0 on node a, rank 1 on node b.
std::vector<NodeCapture> two_ranks() {
    std::vector<NodeCapture> nodes{node("a", 0, 0), node("b", 3 * kMs)};
    nodes[kSender].processes.push_back(process(0, {"rank 0"}));
    nodes[kReceiver].processes.push_back(process(0, {"rank 1"}));
    return nodes;
}

RpcState only_state(const std::vector<NodeCapture>& nodes) {
    const JoinResult result = joined(nodes);
    REQUIRE(result.calls.size() == 1);
    CHECK(result.counts.joined_requests == 0);
    return result.calls[0].state();
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("messages: a send and its receive are one call, without a reply") {
        auto nodes = two_ranks();
        nodes[kSender].halves.push_back(sent(1, 10 * kMs, 11 * kMs));
        nodes[kReceiver].halves.push_back(received(1, 12 * kMs));
        const JoinResult result = joined(nodes);
        REQUIRE(result.calls.size() == 1);
        CHECK(result.calls[0].state() == RpcState::Joined);
        CHECK_FALSE(result.calls[0].told.reply());
        CHECK(result.calls[0].told.server_begin_ns() == kTrueStart + 12 * kMs);
        CHECK(result.calls[0].told.server_end_ns() == kTrueStart + 12 * kMs);
        CHECK(result.counts.joined_replies == 0);
    }

    TEST_CASE("messages: a send waits for its receive for as long as it takes") {
        for (const std::int64_t later : {20 * kMs, 400 * kMs, 900 * kMs}) {
            auto nodes = two_ranks();
            nodes[kSender].halves.push_back(sent(1, 10 * kMs, 11 * kMs));
            nodes[kReceiver].halves.push_back(received(1, 10 * kMs + later));
            // Others come meanwhile, so that all that is open is looked through.
            for (std::uint64_t i = 0; i < 20'000; ++i) {
                const auto at = static_cast<std::int64_t>(12 * kMs + 1000 * i);
                nodes[kSender].halves.push_back(sent(2 + i, at, at + 100));
                nodes[kReceiver].halves.push_back(received(2 + i, at + 500));
            }
            CHECK(joined(nodes).counts.joined_requests == 20'001);
        }
    }

    TEST_CASE(
        "messages: a receive before the send returns is in order, one before it began is not") {
        auto nodes = two_ranks();
        nodes[kSender].halves.push_back(sent(1, 10 * kMs, 90 * kMs));
        nodes[kReceiver].halves.push_back(received(1, 12 * kMs));
        CHECK(joined(nodes).counts.order_violations == 0);
        nodes[kReceiver].halves[0].begin_ticks = nodes[kReceiver].halves[0].end_ticks = 9 * kMs;
        const JoinResult early = joined(nodes);
        CHECK(early.counts.joined_requests == 1);
        CHECK(early.counts.order_violations == 1);
    }

    TEST_CASE("messages: an error that the sender was told of is no answer") {
        auto nodes = two_ranks();
        nodes[kSender].halves.push_back(sent(1, 10 * kMs, 20 * kMs));
        nodes[kSender].halves[0].status = RpcStatus::kError;
        nodes[kReceiver].halves.push_back(received(1, 12 * kMs));
        const JoinResult result = joined(nodes);
        CHECK(result.counts.joined_requests == 1);
        CHECK(result.counts.joined_replies == 0);
    }

    TEST_CASE(
        "messages: one that lies unreceived with a living rank is cut, whatever was recorded") {
        auto nodes = two_ranks();
        nodes[kSender].halves.push_back(sent(1, 10 * kMs, 11 * kMs));
        CHECK(only_state(nodes) == RpcState::Cut);
        nodes[kSender].start_ticks = nodes[kReceiver].start_ticks = 0;
        CHECK(only_state(nodes) == RpcState::Cut);
    }

    TEST_CASE("messages: one to a rank that ended without receiving it is an orphan") {
        auto nodes = two_ranks();
        nodes[kSender].halves.push_back(sent(1, 10 * kMs, 11 * kMs));
        nodes[kReceiver].processes[0] = killed(nodes[kReceiver].processes[0], 500 * kMs);
        CHECK(only_state(nodes) == RpcState::Orphan);
        nodes[kReceiver].processes[0].fate = Fate::kExited;
        nodes[kReceiver].processes[0].verdict = Verdict::kExited;
        CHECK(only_state(nodes) == RpcState::Orphan);
    }

    TEST_CASE("messages: whether a rank that ended had received it, only a recording tells") {
        auto nodes = two_ranks();
        nodes[kSender].halves.push_back(sent(1, 10 * kMs, 11 * kMs));
        nodes[kReceiver].processes[0] = killed(nodes[kReceiver].processes[0], 500 * kMs);
        SUBCASE("its halves could not be read") {
            nodes[kReceiver].halves_complete = false;
        }
        SUBCASE("its recording began later") {
            nodes[kReceiver].start_ticks = 20 * kMs;
        }
        SUBCASE("its recording was over") {
            nodes[kReceiver].stop_ticks = 400 * kMs;
        }
        CHECK(only_state(nodes) == RpcState::Cut);
        // Nobody needs to have watched where it was gone before.
        nodes[kReceiver].processes[0].end_ticks = 5 * kMs;
        CHECK(only_state(nodes) == RpcState::Orphan);
    }

    TEST_CASE("messages: a child with its parent's rank that ends receives nothing in its place") {
        auto nodes = two_ranks();
        nodes[kSender].halves.push_back(sent(1, 10 * kMs, 11 * kMs));
        nodes[kReceiver].processes.push_back(killed(process(1, {"rank 1"}), 20 * kMs));
        CHECK(only_state(nodes) == RpcState::Cut);
    }

    TEST_CASE("messages: one whose sender died in the call is cut and unfinished") {
        auto nodes = two_ranks();
        nodes[kSender].halves.push_back(client("rank 0", "rank 1", 1, 10 * kMs, 0));
        CHECK(only_state(nodes) == RpcState::Cut);
        CHECK(joined(nodes).counts.unfinished == 0);
        nodes[kSender].processes[0] = killed(nodes[kSender].processes[0], 20 * kMs);
        CHECK(only_state(nodes) == RpcState::Cut);
        CHECK(joined(nodes).counts.unfinished == 1);
    }

    TEST_CASE(
        "messages: a receive without its send is an orphan where the sender was always recorded") {
        auto nodes = two_ranks();
        nodes[kReceiver].halves.push_back(received(5, 12 * kMs));
        CHECK(only_state(nodes) == RpcState::Cut);
        nodes[kSender].start_ticks = 0;
        CHECK(only_state(nodes) == RpcState::Orphan);
        nodes[kSender].stop_ticks = 11 * kMs;  // before the others: sent since
        CHECK(only_state(nodes) == RpcState::Cut);
        nodes[kSender].stop_ticks = 1000 * kMs;
        nodes[kSender].halves_complete = false;
        CHECK(only_state(nodes) == RpcState::Cut);
    }

    TEST_CASE(
        "messages: numbers of one channel prove nothing of another, nor does the sender's end") {
        auto nodes = two_ranks();
        // Tag 1 has reached its first message in the capture, tag 2 its ninth.
        nodes[kSender].halves.push_back(sent(1, 10 * kMs, 11 * kMs));
        nodes[kReceiver].halves.push_back(received(1, 12 * kMs));
        nodes[kReceiver].halves.push_back(received(9, 13 * kMs));
        nodes[kSender].processes[0] = killed(nodes[kSender].processes[0], 12 * kMs);
        const JoinResult result = joined(nodes);
        CHECK(result.counts.joined_requests == 1);
        CHECK(result.counts.cut == 1);
        CHECK(result.counts.orphans == 0);
    }

    TEST_CASE("messages: their numbers say nothing of the same process's requests") {
        auto nodes = two_ranks();
        nodes[kSender].processes[0].workers.push_back("worker0");
        nodes[kReceiver].processes[0].workers.push_back("worker1");
        nodes[kSender].halves.push_back(sent(1, 2 * kMs, 2 * kMs + 1));
        nodes[kReceiver].halves.push_back(received(1, 3 * kMs));
        // Made before the capture: the only recorded call has a greater number.
        nodes[kReceiver].halves.push_back(server("worker1", "worker0", 41, 4 * kMs, 5 * kMs));
        nodes[kSender].halves.push_back(client("worker0", "worker1", 42, 6 * kMs, 9 * kMs));
        nodes[kReceiver].halves.push_back(server("worker1", "worker0", 42, 7 * kMs, 8 * kMs));
        const JoinResult result = joined(nodes);
        CHECK(result.counts.joined_requests == 2);
        CHECK(result.counts.joined_replies == 1);
        CHECK(result.counts.cut == 1);
        CHECK(result.counts.orphans == 0);
    }

    TEST_CASE("messages: what is kept is what was sent and not yet received") {
        const auto most = [](std::uint64_t messages, std::uint64_t unreceived) {
            auto nodes = two_ranks();
            class Nothing final : public CallSink {
                void add(const ringside::fbs::Call&) override {}
            } nothing;
            Join joining(nodes, {7, true}, nothing);
            const std::uint32_t from = joining.process(kSender, 0);
            const std::uint32_t to = joining.process(kReceiver, 0);
            const std::uint32_t rank_0 = joining.worker("rank 0");
            const std::uint32_t rank_1 = joining.worker("rank 1");
            for (std::uint64_t i = 0; i < messages; ++i) {
                const std::uint64_t at = 10 * kMs + 1000 * i;
                joining.advance(kTrueStart + static_cast<std::int64_t>(at));
                joining.whole({from, rank_1, {}, 3 * i, false, {{}, {i + 1}}, i, 0, at, i}, at + 10,
                              RpcStatus::kSent);
                if (i < unreceived) continue;
                joining.whole({to, rank_0, {}, 3 * i, true, {{}, {i + 1}}, i, 0, at + 500, i},
                              at + 500, RpcStatus::kOk);
            }
            joining.finish();
            return joining.most_open();
        };
        const std::size_t few = most(100'000, 0);
        CHECK(most(400'000, 0) < few * 5 / 4);
        const std::size_t unreceived = most(400'000, 100'000);
        CHECK(unreceived > 100'000);
        CHECK(unreceived < few + 300'000);  // a sweep comes when as many have come as are kept
    }

    TEST_CASE("messages: a process goes by its rank where MPI was found in it, and nowhere else") {
        using ringside::schema::SourceId;
        using ringside::schema::SourceLevel;
        ProcessReport report;
        report.rank = 3;
        report.worker_name = "worker3";
        CHECK(outcome_of(report).workers == std::vector<std::string>{"worker3"});
        report.sources.push_back({SourceId::kMpi, SourceLevel::kAbsent, ""});
        CHECK(outcome_of(report).workers == std::vector<std::string>{"worker3"});
        report.sources.back().level = SourceLevel::kFull;
        CHECK(outcome_of(report).workers == std::vector<std::string>{"worker3", "rank 3"});
        report.workers = {"rank 3"};
        CHECK(outcome_of(report).workers == std::vector<std::string>{"rank 3", "worker3"});
        report.rank = -1;
        report.workers.clear();
        CHECK(outcome_of(report).workers == std::vector<std::string>{"worker3"});
    }

    TEST_CASE("messages: names of ranks are told from others") {
        CHECK(is_rank_name(rank_name(0)));
        CHECK(is_rank_name(rank_name(1023)));
        for (const char* other :
             {"", "rank ", "rank", "rank x", "rank 1 ", "rank -1", "Rank 1", "worker1"})
            CHECK_FALSE(is_rank_name(other));
    }
}
