// The join's rules, each on a job small enough to be checked by hand.
#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <random>

#include "agent/correlate/join.hpp"
#include "halves.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
using ringside::schema::RpcStatus;

namespace {

/// Two nodes, worker0 and worker1, one process each.
std::vector<NodeCapture> two_nodes(std::int64_t skew_ns = 0, std::int64_t bound_ns = 50'000) {
    std::vector<NodeCapture> nodes{node("a", 0, 0), node("b", skew_ns, bound_ns)};
    nodes[0].processes.push_back(process(0, {"worker0"}));
    nodes[1].processes.push_back(process(0, {"worker1"}));
    return nodes;
}

/// Bytes of the heap in use, while the join tells of calls.
class Weighing final : public CallSink {
public:
    void add(const ringside::fbs::Call&) override { most_ = std::max(most_, in_use()); }
    std::size_t grown() const { return most_ - before_; }

private:
    static std::size_t in_use() {
        const auto heap = ::mallinfo2();
        return heap.uordblks + heap.hblkhd;
    }
    std::size_t before_ = in_use(), most_ = before_;
};

/// Each node's worker calls the next one's.
std::vector<NodeCapture> circle(std::uint32_t size) {
    const auto worker = [&](std::uint32_t n) { return "worker" + std::to_string(n % size); };
    std::vector<NodeCapture> nodes;
    for (std::uint32_t n = 0; n < size; ++n) {
        NodeCapture& made = nodes.emplace_back(node("n" + std::to_string(n)));
        made.processes.push_back(process(0, {worker(n)}));
        made.halves.push_back(client(worker(n), worker(n + 1), 0, 10 * kMs, 14 * kMs));
        made.halves.push_back(server(worker(n), worker(n + size - 1), 0, 11 * kMs, 13 * kMs));
    }
    return nodes;
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("join: memory grows with the nodes, not with their pairs") {
        constexpr std::uint32_t kNodes = 4000;
        const auto nodes = circle(kNodes);
        Weighing weighing;
        CHECK(join(nodes, {7, true}, weighing).joined_requests == kNodes);
        // A table of a word for each pair would be 32 KB a node.
        CHECK(weighing.grown() / kNodes < 8000);
    }

    TEST_CASE("join: nothing gives nothing") {
        CHECK(joined({}).calls.empty());
        CHECK(joined(two_nodes()).calls.empty());
    }

    TEST_CASE("join: two halves of one span are one call with a reply") {
        auto nodes = two_nodes(3 * kMs);
        nodes[0].halves.push_back(client("worker0", "worker1", 0, 10 * kMs, 14 * kMs));
        nodes[1].halves.push_back(server("worker1", "worker0", 0, 11 * kMs, 13 * kMs));
        const JoinResult result = joined(nodes);
        REQUIRE(result.calls.size() == 1);
        const Call& call = result.calls[0];
        CHECK(call.state() == RpcState::Joined);
        CHECK(call.told.reply());
        CHECK(call.client == HalfIndex{0, 0});
        CHECK(call.server == HalfIndex{1, 0});
        CHECK(call.told.client_begin_ns() == kTrueStart + 10 * kMs);
        CHECK(call.told.server_begin_ns() == kTrueStart + 11 * kMs);
        CHECK(call.told.server_end_ns() == kTrueStart + 13 * kMs);
        CHECK(call.told.client_end_ns() == kTrueStart + 14 * kMs);
        CHECK(call.trace.valid());
        CHECK(result.counts.joined_requests == 1);
        CHECK(result.counts.joined_replies == 1);
        CHECK(result.counts.order_violations == 0);
    }

    TEST_CASE("join: a timed-out call that was served is joined without a reply") {
        auto nodes = two_nodes();
        nodes[0].halves.push_back(client("worker0", "worker1", 0, 10 * kMs, 20 * kMs));
        nodes[0].halves[0].status = RpcStatus::kTimeout;
        nodes[1].halves.push_back(server("worker1", "worker0", 0, 11 * kMs, 90 * kMs));
        const JoinResult result = joined(nodes);
        REQUIRE(result.calls.size() == 1);
        CHECK(result.calls[0].state() == RpcState::Joined);
        CHECK_FALSE(result.calls[0].told.reply());
        CHECK(result.counts.joined_replies == 0);
        CHECK(result.counts.order_violations == 0);
    }

    TEST_CASE("join: an exception's answer is a reply") {
        auto nodes = two_nodes();
        nodes[0].halves.push_back(client("worker0", "worker1", 0, 10 * kMs, 20 * kMs));
        nodes[0].halves[0].status = RpcStatus::kError;
        nodes[1].halves.push_back(server("worker1", "worker0", 0, 11 * kMs, 19 * kMs));
        CHECK(joined(nodes).counts.joined_replies == 1);
    }

    TEST_CASE("join: an ended call to a recorded peer that has no half of it is an orphan") {
        auto nodes = two_nodes();
        nodes[0].halves.push_back(client("worker0", "worker1", 0, 10 * kMs, 20 * kMs));
        CHECK(joined(nodes).counts.orphans == 1);
    }

    TEST_CASE("join: a call to a worker outside the capture is cut") {
        auto nodes = two_nodes();
        nodes[0].halves.push_back(client("worker0", "elsewhere", 0, 10 * kMs, 20 * kMs));
        const JoinResult result = joined(nodes);
        CHECK(result.counts.cut == 1);
        CHECK(result.counts.orphans == 0);
    }

    TEST_CASE("join: a peer that was not recorded cuts") {
        for (const Verdict verdict : {Verdict::kRefused, Verdict::kUnreachable,
                                      Verdict::kNotInjected, Verdict::kNothingRecorded}) {
            auto nodes = two_nodes();
            nodes[1].processes[0].verdict = verdict;
            nodes[1].processes[0].start_delay_ns = -1;
            nodes[0].halves.push_back(client("worker0", "worker1", 0, 10 * kMs, 20 * kMs));
            CHECK(joined(nodes).counts.cut == 1);
        }
    }

    TEST_CASE("join: a node whose halves could not be read cuts") {
        auto nodes = two_nodes();
        nodes[1].halves_complete = false;
        nodes[0].halves.push_back(client("worker0", "worker1", 0, 10 * kMs, 20 * kMs));
        CHECK(joined(nodes).counts.cut == 1);
    }

    TEST_CASE("join: cut at the end: a call still open at the stop may be on its way") {
        auto nodes = two_nodes();
        nodes[0].halves.push_back(client("worker0", "worker1", 0, 999 * kMs, 0));
        const JoinResult result = joined(nodes);
        CHECK(result.counts.cut == 1);
        CHECK(result.counts.unfinished == 0);
    }

    TEST_CASE(
        "join: cut at the start: a request that was made before the capture has no client's half") {
        auto nodes = two_nodes();
        nodes[1].halves.push_back(server("worker1", "worker0", 41, 2 * kMs, 3 * kMs));
        nodes[0].halves.push_back(client("worker0", "worker1", 42, 4 * kMs, 6 * kMs));
        nodes[1].halves.push_back(server("worker1", "worker0", 42, 5 * kMs, 5 * kMs + 1));
        const JoinResult result = joined(nodes);
        CHECK(result.counts.joined_requests == 1);
        CHECK(result.counts.cut == 1);
        CHECK(result.counts.orphans == 0);
    }

    TEST_CASE(
        "join: a request numbered after a recorded one, without its client's half, is an orphan") {
        auto nodes = two_nodes();
        nodes[0].halves.push_back(client("worker0", "worker1", 42, 4 * kMs, 6 * kMs));
        nodes[1].halves.push_back(server("worker1", "worker0", 42, 5 * kMs, 5 * kMs + 1));
        nodes[1].halves.push_back(server("worker1", "worker0", 43, 8 * kMs, 9 * kMs));
        CHECK(joined(nodes).counts.orphans == 1);
    }

    TEST_CASE("join: from the first instruction on, every single server's half is an orphan") {
        auto nodes = two_nodes();
        nodes[0].start_ticks = nodes[1].start_ticks = 0;
        nodes[1].halves.push_back(server("worker1", "worker0", 0, 8 * kMs, 9 * kMs));
        CHECK(joined(nodes).counts.orphans == 1);
    }

    TEST_CASE(
        "join: a call that its peer's node, stopped before the others, may not have seen is cut") {
        auto nodes = two_nodes(0, 100'000);
        nodes[1].stop_ticks = 20 * kMs;
        nodes[0].halves.push_back(client("worker0", "worker1", 0, 18 * kMs, 20 * kMs - 50'000));
        CHECK(joined(nodes).counts.cut == 1);
        nodes[0].halves[0].end_ticks = 20 * kMs - 150'000;
        CHECK(joined(nodes).counts.orphans == 1);
        // Its caller died in it: by then it was over.
        nodes[0].halves[0].ended = false;
        nodes[0].processes[0] = killed(nodes[0].processes[0], 30 * kMs);
        CHECK(joined(nodes).counts.cut == 1);
        nodes[0].processes[0].end_ticks = 19 * kMs;
        CHECK(joined(nodes).counts.orphans == 1);
    }

    TEST_CASE("join: a request served after its caller's node was stopped is cut") {
        auto nodes = two_nodes(0, 100'000);
        nodes[0].stop_ticks = 20 * kMs;
        nodes[0].halves.push_back(client("worker0", "worker1", 42, 4 * kMs, 6 * kMs));
        nodes[1].halves.push_back(server("worker1", "worker0", 42, 5 * kMs, 5 * kMs + 1));
        nodes[1].halves.push_back(server("worker1", "worker0", 43, 20 * kMs, 21 * kMs));
        SUBCASE("numbers tell that it was made later") {}
        SUBCASE("from the first instruction on") {
            nodes[0].start_ticks = 0;
        }
        CHECK(joined(nodes).counts.cut == 1);
        CHECK(joined(nodes).counts.orphans == 0);
        nodes[1].halves[1].begin_ticks = 19 * kMs;
        CHECK(joined(nodes).counts.orphans == 1);
    }

    TEST_CASE("join: a call that begins within the bound of its peer's start is cut") {
        auto nodes = two_nodes(0, 100'000);
        nodes[1].start_ticks = 10 * kMs;
        nodes[0].halves.push_back(client("worker0", "worker1", 0, 10 * kMs + 50'000, 12 * kMs));
        CHECK(joined(nodes).counts.cut == 1);
        nodes[0].halves[0].begin_ticks = 10 * kMs + 150'000;
        CHECK(joined(nodes).counts.orphans == 1);
    }

    TEST_CASE(
        "join: calls that a killed worker was serving are unfinished, those that never arrived "
        "orphans") {
        auto nodes = two_nodes();
        nodes[1].processes[0] = killed(nodes[1].processes[0], 50 * kMs);
        nodes[0].halves.push_back(client("worker0", "worker1", 0, 10 * kMs, 52 * kMs));
        nodes[0].halves[0].status = RpcStatus::kPeerGone;
        nodes[1].halves.push_back(server("worker1", "worker0", 0, 11 * kMs, 0));
        nodes[0].halves.push_back(client("worker0", "worker1", 1, 60 * kMs, 0));
        nodes[0].halves.push_back(client("worker0", "worker1", 2, 40 * kMs, 62 * kMs));
        nodes[0].halves[2].status = RpcStatus::kError;
        const JoinResult result = joined(nodes);
        CHECK(result.counts.joined_requests == 1);
        CHECK(result.counts.joined_replies == 0);
        CHECK(result.counts.unfinished == 1);
        CHECK(result.counts.orphans == 2);
        CHECK(result.calls[0].told.unfinished());
    }

    TEST_CASE("join: a killed caller leaves its call unfinished") {
        auto nodes = two_nodes();
        nodes[0].processes[0] = killed(nodes[0].processes[0], 12 * kMs);
        nodes[0].halves.push_back(client("worker0", "worker1", 0, 10 * kMs, 0));
        nodes[1].halves.push_back(server("worker1", "worker0", 0, 11 * kMs, 20 * kMs));
        const JoinResult result = joined(nodes);
        CHECK(result.counts.joined_requests == 1);
        CHECK(result.counts.unfinished == 1);
        CHECK(result.counts.joined_replies == 0);
    }

    TEST_CASE("join: init_rpc twice: the same span, told apart by time") {
        auto nodes = two_nodes(-5 * kMs);
        for (const std::int64_t t : {10 * kMs, 500 * kMs}) {
            nodes[0].halves.push_back(client("worker0", "worker1", 0, t, t + 4 * kMs));
            nodes[1].halves.push_back(server("worker1", "worker0", 0, t + kMs, t + 3 * kMs));
        }
        const JoinResult result = joined(nodes);
        REQUIRE(result.calls.size() == 2);
        CHECK(result.counts.joined_requests == 2);
        CHECK(result.counts.joined_replies == 2);
        CHECK(result.counts.ambiguous == 0);
        for (const Call& call : result.calls) {
            CHECK(call.told.server_begin_ns() - call.told.client_begin_ns() == kMs);
            CHECK(call.client->half == call.server->half);
        }
        CHECK(result.calls[0].trace != result.calls[1].trace);
    }

    TEST_CASE("join: init_rpc twice: a call that timed out does not take the next one's server") {
        auto nodes = two_nodes();
        nodes[0].halves.push_back(client("worker0", "worker1", 0, 10 * kMs, 20 * kMs));
        nodes[0].halves[0].status = RpcStatus::kTimeout;
        nodes[0].halves.push_back(client("worker0", "worker1", 0, 500 * kMs, 504 * kMs));
        nodes[1].halves.push_back(server("worker1", "worker0", 0, 501 * kMs, 503 * kMs));
        const JoinResult result = joined(nodes);
        CHECK(result.counts.joined_requests == 1);
        CHECK(result.counts.orphans == 1);
        CHECK(result.counts.ambiguous == 0);
    }

    TEST_CASE(
        "join: init_rpc twice, nearer than the clocks can tell: counted, left cut, not guessed") {
        auto nodes = two_nodes(0, 1000 * kMs);
        for (const std::int64_t t : {10 * kMs, 500 * kMs}) {
            nodes[0].halves.push_back(client("worker0", "worker1", 0, t, t + 4 * kMs));
            nodes[1].halves.push_back(server("worker1", "worker0", 0, t + kMs, t + 3 * kMs));
        }
        const JoinResult result = joined(nodes);
        CHECK(result.counts.joined_requests == 0);
        CHECK(result.counts.ambiguous == 4);
        CHECK(result.counts.cut == 4);
        CHECK(result.calls.size() == 4);
    }

    TEST_CASE(
        "join: one id, two requests of which each lost a half, far apart in time: not joined") {
        auto nodes = two_nodes();
        nodes[1].halves.push_back(server("worker1", "worker0", 5, 2 * kMs, 3 * kMs));
        nodes[0].halves.push_back(client("worker0", "worker1", 5, 900 * kMs, 0));
        const JoinResult result = joined(nodes);
        CHECK(result.counts.joined_requests == 0);
        CHECK(result.counts.cut == 2);
    }

    TEST_CASE("join: a hundred thousand halves of one id cost their own calls only") {
        auto nodes = two_nodes();
        for (int i = 0; i < 1000; ++i) {
            nodes[0].halves.push_back(client("worker0", "worker1", 9, 10 * kMs + i, 20 * kMs));
            nodes[1].halves.push_back(server("worker1", "worker0", 9, 11 * kMs + i, 19 * kMs));
        }
        nodes[0].halves.push_back(client("worker0", "worker1", 10, 10 * kMs, 20 * kMs));
        nodes[1].halves.push_back(server("worker1", "worker0", 10, 11 * kMs, 19 * kMs));
        const JoinResult result = joined(nodes);
        CHECK(result.counts.joined_requests == 1);
        CHECK(result.counts.ambiguous == 2000);
    }

    TEST_CASE("join: a reply before its request beyond the bound is counted") {
        auto nodes = two_nodes();
        nodes[0].halves.push_back(client("worker0", "worker1", 0, 10 * kMs, 14 * kMs));
        nodes[1].halves.push_back(server("worker1", "worker0", 0, 9 * kMs, 13 * kMs));
        const JoinResult result = joined(nodes);
        CHECK(result.counts.joined_requests == 1);
        CHECK(result.counts.order_violations == 1);
    }

    TEST_CASE(
        "join: skewed nodes: in order with the correction, out of order without, joined alike") {
        std::vector<NodeCapture> nodes{node("a", 0, 0), node("b", 1000 * kMs), node("c", -3 * kMs)};
        for (std::uint32_t n = 0; n < 3; ++n)
            nodes[n].processes.push_back(process(0, {"worker" + std::to_string(n)}));
        for (std::uint64_t i = 0; i < 10; ++i) {
            const std::int64_t t = (10 + 20 * static_cast<std::int64_t>(i)) * kMs;
            const std::string to = i % 2 == 0 ? "worker1" : "worker2";
            nodes[0].halves.push_back(client("worker0", to, i, t, t + 400'000));
            nodes[i % 2 + 1].halves.push_back(server(to, "worker0", i, t + 100'000, t + 300'000));
        }
        const JoinResult corrected = joined(nodes);
        CHECK(corrected.counts.joined_replies == 10);
        CHECK(corrected.counts.order_violations == 0);
        const JoinResult raw = joined(nodes, {7, false});
        CHECK(raw.counts.joined_replies == 10);
        CHECK(raw.counts.order_violations == 10);
        CHECK(std::any_of(raw.calls.begin(), raw.calls.end(), [](const Call& call) {
            return call.told.client_end_ns() < call.told.server_begin_ns();
        }));
    }

    TEST_CASE("join: the result does not depend on the order of the halves") {
        auto nodes = two_nodes(2 * kMs);
        for (std::uint64_t i = 0; i < 200; ++i) {
            const std::int64_t t = (5 + static_cast<std::int64_t>(i)) * kMs;
            nodes[0].halves.push_back(client("worker0", "worker1", i % 150, t, t + 600'000));
            if (i % 7 != 0)
                nodes[1].halves.push_back(
                    server("worker1", "worker0", i % 150, t + 100'000, t + 500'000));
        }
        const JoinCounts first = joined(nodes).counts;
        std::mt19937_64 random(3);
        std::shuffle(nodes[0].halves.begin(), nodes[0].halves.end(), random);
        std::shuffle(nodes[1].halves.begin(), nodes[1].halves.end(), random);
        const JoinCounts second = joined(nodes).counts;
        CHECK(first.joined_requests == second.joined_requests);
        CHECK(first.orphans == second.orphans);
        CHECK(first.cut == second.cut);
        CHECK(first.ambiguous == second.ambiguous);
        CHECK(first.joined_requests + first.orphans + first.cut == joined(nodes).calls.size());
    }

    TEST_CASE("join: ticks and clocks that nobody honest writes overflow nothing") {
        auto nodes = two_nodes();
        nodes[1].calibration.ticks_per_second = 0;
        nodes[0].halves.push_back(client("worker0", "worker1", 0, 10 * kMs, 14 * kMs));
        nodes[0].halves[0].begin_ticks = ~0ull;
        nodes[0].halves[0].end_ticks = 1ull << 63;
        nodes[1].halves.push_back(server("worker1", "worker0", 0, 1, 2));
        nodes[1].clock.bound_ns = INT64_MAX;
        nodes[1].clock.drift_ppb = 1e300;
        CHECK(joined(nodes).calls.size() >= 1);
    }
}
