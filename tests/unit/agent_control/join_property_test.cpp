// Jobs made at random, whose truth is known: the join against the rules written out slowly, and against the truth.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

#include "halves.hpp"
#include "join_reference.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
using ringside::schema::RpcStatus;

namespace {

struct Kind {
    int calls = 500;
    std::int64_t over_ns = 500 * kMs;
    std::uint64_t ids = 1'000'000;  ///< numbers start again after so many
    bool in_turn = false;           ///< and as in a job that calls init_rpc then: far later
    double loss = 0.1;
    double failed = 0.1;
    double messages = 0.3;  ///< of the calls: sent, and received whenever
    double never_ended = 0.02;
    double killed = 0.3;      ///< of the processes
    double unmeasured = 0.2;  ///< of the nodes
    bool liars = true;        ///< halves that contradict their clocks, and ids of nobody
};

struct RandomJob {
    std::vector<NodeCapture> nodes;
    std::set<std::pair<HalfIndex, HalfIndex>> truth;
};

class JobMaker {
public:
    JobMaker(std::uint64_t seed, const Kind& kind) : random_(seed), kind_(kind) {}

    RandomJob run() {
        const std::uint32_t count = below(4) + 1;
        for (std::uint32_t n = 0; n < count; ++n) {
            const std::int64_t skew = n == 0 ? 0 : between(-2000, 2000) * kMs;
            bounds_.push_back(n == 0 ? 0 : between(0, 300'000));
            job_.nodes.push_back(node("node" + std::to_string(n), skew, bounds_.back()));
            NodeCapture& made = job_.nodes.back();
            if (n > 0) made.clock.offset_ns += between(-bounds_[n], bounds_[n]);
            if (n > 0 && chance(kind_.unmeasured)) made.clock.bound_ns = INT64_MAX;
            if (chance(0.3)) made.start_ticks = 0;
            if (chance(0.2))
                made.stop_ticks = static_cast<std::uint64_t>(between(1, kind_.over_ns));
            for (std::uint32_t p = 0, processes = below(3) + 1; p < processes; ++p) {
                ProcessOutcome outcome =
                    process(p, {worker(n, p), rank(static_cast<std::uint32_t>(workers_.size()))});
                if (chance(0.1)) outcome.workers.push_back("second" + std::to_string(n));
                if (chance(0.1)) outcome.verdict = Verdict::kNothingRecorded;
                if (chance(0.1)) outcome.start_delay_ns = -1;
                if (chance(kind_.killed))
                    outcome = test::killed(outcome, between(1, kind_.over_ns));
                made.processes.push_back(std::move(outcome));
                workers_.push_back({n, p});
            }
        }
        for (int i = 0; i < kind_.calls; ++i) call();
        return std::move(job_);
    }

private:
    struct Worker {
        std::uint32_t node;
        std::uint32_t process;
    };

    std::uint32_t below(std::uint32_t limit) {
        return std::uniform_int_distribution<std::uint32_t>(0, limit - 1)(random_);
    }
    std::int64_t between(std::int64_t from, std::int64_t to) {
        return std::uniform_int_distribution<std::int64_t>(from, to)(random_);
    }
    bool chance(double part) {
        return std::uniform_real_distribution<double>(0, 1)(random_) < part;
    }
    static std::string worker(std::uint32_t node, std::uint32_t process) {
        return "w" + std::to_string(node) + "." + std::to_string(process);
    }

    static std::string rank(std::uint32_t number) { return rank_name(static_cast<int>(number)); }

    void call() {
        const std::uint32_t from_rank = below(static_cast<std::uint32_t>(workers_.size()));
        const std::uint32_t to_rank = below(static_cast<std::uint32_t>(workers_.size()));
        const Worker from = workers_[from_rank];
        const Worker to = workers_[to_rank];
        const bool message = chance(kind_.messages);
        const bool elsewhere = chance(0.02);
        const std::string caller = message ? rank(from_rank) : worker(from.node, from.process);
        const std::string callee = message     ? rank(elsewhere ? 1000 : to_rank)
                                   : elsewhere ? "elsewhere"
                                               : worker(to.node, to.process);
        const std::uint64_t number = next_ % kind_.ids;
        std::int64_t begin = between(2, kind_.over_ns);
        if (kind_.in_turn) {
            constexpr std::int64_t kInitNs = 200 * kMs;
            const auto turns =
                static_cast<std::int64_t>(static_cast<std::uint64_t>(kind_.calls) / kind_.ids + 1);
            begin = begin / turns + static_cast<std::int64_t>(next_ / kind_.ids) *
                                        (kind_.over_ns / turns + kInitNs);
        }
        ++next_;
        const std::int64_t served = begin + between(0, 2 * kMs);
        const std::int64_t done = served + between(0, 3 * kMs);
        Half client = test::client(caller, callee, number, begin, done + between(1, kMs));
        Half server = test::server(callee, caller, number, served, done);
        if (message) {
            client.status = RpcStatus::kSent;
            if (chance(0.1))
                server.begin_ticks += static_cast<std::uint64_t>(between(0, kind_.over_ns / 4));
            server.end_ticks = server.begin_ticks;
        }
        client.process = from.process;
        server.process = to.process;
        for (Half* half : {&client, &server}) {
            if (chance(kind_.never_ended)) half->ended = false;
            if (kind_.liars && chance(0.01)) half->id.span = {};
            if (kind_.liars && chance(0.01))
                half->begin_ticks += static_cast<std::uint64_t>(between(0, 15 * kMs));
            half->end_ticks = std::max(half->end_ticks, half->begin_ticks);
        }
        if (chance(kind_.failed)) {
            client.status = static_cast<RpcStatus>(below(3) + 1);
            client.end_ticks = client.begin_ticks + static_cast<std::uint64_t>(between(1, 2 * kMs));
        }
        if (chance(0.05)) client.id.trace = server.id.trace = {number + 1, 5};
        const bool has_client = !chance(kind_.loss);
        const bool has_server = !chance(kind_.loss) && !elsewhere;
        const auto add = [&](std::uint32_t node, const Half& half) {
            job_.nodes[node].halves.push_back(half);
            return HalfIndex{node, static_cast<std::uint32_t>(job_.nodes[node].halves.size() - 1)};
        };
        HalfIndex client_at, server_at;
        if (has_client) client_at = add(from.node, client);
        if (has_server) server_at = add(to.node, server);
        if (has_client && has_server) job_.truth.emplace(client_at, server_at);
    }

    std::mt19937_64 random_;
    const Kind kind_;
    RandomJob job_;
    std::vector<std::int64_t> bounds_;
    std::vector<Worker> workers_;
    std::uint64_t next_ = 0;
};

std::vector<JoinedHalves> as_compared(const std::vector<Call>& calls) {
    std::vector<JoinedHalves> result;
    for (const Call& call : calls)
        result.push_back(
            {call.client, call.server, call.state(), call.told.unfinished(), call.told.reply()});
    std::sort(result.begin(), result.end());
    return result;
}

/// Begins and ends apart, in steps of time, in any order within each.
JoinResult streamed(const std::vector<NodeCapture>& nodes, std::uint64_t seed) {
    struct Event {
        std::int64_t ns;
        HalfIndex at;
        bool begin;
    };
    std::vector<Event> events;
    for (std::uint32_t n = 0; n < nodes.size(); ++n) {
        const NodeClock clock = nodes[n].node_clock();
        for (std::uint32_t h = 0; h < nodes[n].halves.size(); ++h) {
            const Half& half = nodes[n].halves[h];
            events.push_back({clock.leader_ns(Ticks{half.begin_ticks}).value, {n, h}, true});
            if (half.ended)
                events.push_back({clock.leader_ns(Ticks{half.end_ticks}).value, {n, h}, false});
        }
    }
    std::sort(events.begin(), events.end(),
              [](const Event& a, const Event& b) { return a.ns < b.ns; });
    std::mt19937_64 random(seed);
    Calls calls(nodes);
    Join joining(nodes, {7, true}, calls);
    for (std::size_t first = 0; first < events.size();) {
        std::size_t last = std::min<std::size_t>(first + 1 + random() % 300, events.size());
        while (last < events.size() && events[last].ns == events[last - 1].ns) ++last;
        joining.advance(events[first].ns);
        std::shuffle(events.begin() + static_cast<std::ptrdiff_t>(first),
                     events.begin() + static_cast<std::ptrdiff_t>(last), random);
        for (; first < last; ++first) {
            const HalfIndex at = events[first].at;
            const Half& half = nodes[at.node].halves[at.half];
            const std::uint32_t process = joining.process(at.node, half.process);
            if (events[first].begin) {
                joining.begin({process, joining.worker(half.peer), half.lane, half.position,
                               half.server, half.id, half.key, half.parent_key, half.begin_ticks,
                               half.wire_id});
            } else {
                joining.end(process, half.key, half.end_ticks, half.status);
            }
        }
    }
    const JoinCounts counts = joining.finish();
    CHECK(joining.most_open() <= events.size());
    return {std::move(calls.told), counts};
}

void compare(std::uint64_t seed, const Kind& kind) {
    CAPTURE(seed);
    const RandomJob job = JobMaker(seed, kind).run();
    JoinReference reference(job.nodes);
    const std::vector<JoinedHalves> wanted = reference.run();
    const JoinResult at_once = joined(job.nodes);
    CHECK(at_once.counts.ambiguous == reference.ambiguous);
    const bool same = as_compared(at_once.calls) == wanted;
    CHECK(same);
    const JoinResult stepwise = streamed(job.nodes, seed);
    CHECK(stepwise.counts.ambiguous == reference.ambiguous);
    CHECK(stepwise.counts.order_violations == at_once.counts.order_violations);
    const bool same_in_steps = as_compared(stepwise.calls) == wanted;
    CHECK(same_in_steps);
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("join, at random: small jobs come out as the rules say, at once and in steps") {
        Kind kind;
        for (std::uint64_t seed = 1; seed <= 100; ++seed) {
            kind.ids = seed % 3 == 0 ? 7 : seed % 3 == 1 ? 100 : 1'000'000;
            compare(seed, kind);
        }
    }

    TEST_CASE("join, at random: jobs longer than what is kept of them come out as the rules say") {
        Kind kind;
        kind.calls = 12'000;
        kind.over_ns = 20'000 * kMs;
        for (std::uint64_t seed = 1; seed <= 8; ++seed) {
            kind.ids = seed % 2 == 0 ? 300 : 5'000;
            kind.unmeasured = seed % 4 == 0 ? 0.3 : 0;
            kind.killed = 0.1;
            compare(seed, kind);
        }
    }

    TEST_CASE(
        "join, at random: within the clocks' bounds only true pairs are joined, and all of them") {
        Kind kind;
        kind.calls = 10'000;
        kind.over_ns = 5'000 * kMs;
        kind.never_ended = 0;
        kind.liars = false;
        for (std::uint64_t seed = 1; seed <= 8; ++seed) {
            const RandomJob job = JobMaker(seed, kind).run();
            const JoinResult result = joined(job.nodes);
            std::set<std::pair<HalfIndex, HalfIndex>> pairs;
            for (const Call& call : result.calls) {
                if (call.state() == RpcState::Joined) pairs.emplace(*call.client, *call.server);
            }
            const bool same = pairs == job.truth;
            CHECK(same);
            CHECK(result.counts.ambiguous == 0);
        }
    }

    TEST_CASE(
        "join, at random: where numbers start again with init_rpc, true pairs are joined and no "
        "others") {
        Kind kind;
        kind.calls = 4'000;
        kind.over_ns = 5'000 * kMs;
        kind.never_ended = 0;
        kind.liars = false;
        kind.failed = kind.messages = 0;  // what no reply ends may be received in any later turn
        kind.unmeasured = 0;
        kind.ids = 500;
        kind.in_turn = true;
        for (std::uint64_t seed = 1; seed <= 8; ++seed) {
            const RandomJob job = JobMaker(seed, kind).run();
            std::set<std::pair<HalfIndex, HalfIndex>> pairs;
            const JoinResult result = joined(job.nodes);
            for (const Call& call : result.calls) {
                if (call.state() == RpcState::Joined) pairs.emplace(*call.client, *call.server);
            }
            const bool same = pairs == job.truth;
            CHECK(same);
            CHECK(result.counts.ambiguous == 0);
        }
    }
}
