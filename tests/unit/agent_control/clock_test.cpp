// The clock model: whatever the asymmetry of the network, the true offset lies inside the bound.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "agent/clock/model.hpp"
#include "agent/clock/ping.hpp"
#include "agent/clock/ping_sweep.hpp"

using namespace ringside::agent;
using ringside::schema::Nanoseconds;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kEpoch = 1'790'000'000 * kSecond;

/// A node whose clock is known, and a network whose two directions take what a generator says.
struct Node {
    std::int64_t offset_ns = 0;  // node - leader at kEpoch
    double drift_ppb = 0;

    std::int64_t at(std::int64_t leader_ns) const {
        return leader_ns + offset_ns +
               std::llround(drift_ppb * static_cast<double>(leader_ns - kEpoch) / 1e9);
    }
    PingSample ping(std::int64_t leader_ns, std::int64_t there_ns, std::int64_t back_ns) const {
        return {{leader_ns}, {at(leader_ns + there_ns)}, {leader_ns + there_ns + back_ns}};
    }
    /// |corrected - true| at a leader's instant.
    std::int64_t error_at(const ClockCorrection& correction, std::int64_t leader_ns) const {
        return std::abs(correction.leader_ns({at(leader_ns)}).value - leader_ns);
    }
};

std::vector<PingSample> epoch(const Node& node, std::int64_t leader_ns, std::mt19937_64& random) {
    std::vector<PingSample> samples;
    constexpr int kPings = 12;
    samples.reserve(kPings);
    std::uniform_int_distribution<std::int64_t> delay(20'000, 400'000);
    for (int i = 0; i < kPings; ++i)
        samples.push_back(node.ping(leader_ns + i * 1'000'000, delay(random), delay(random)));
    return samples;
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("clock: through a relay, too, whatever the asymmetry of both ways") {
        std::mt19937_64 random(22);
        std::uniform_int_distribution<std::int64_t> delay(20'000, 400'000);
        for (const double drift : {0.0, 80'000.0, -120'000.0}) {
            const Node relay{5 * kSecond, -drift};
            const Node node{-2 * kSecond, drift};
            const std::int64_t end = kEpoch + 2 * kSecond;
            const auto relay_before = epoch(relay, kEpoch, random);
            const auto relay_after = epoch(relay, end, random);
            // The relay's pings, by its own clock.
            const auto by_relay = [&](std::int64_t from) {
                std::vector<PingSample> samples;
                for (int i = 0; i < 12; ++i) {
                    const std::int64_t sent = from + i * 1'000'000;
                    const std::int64_t there = delay(random), back = delay(random);
                    samples.push_back({{relay.at(sent)},
                                       {node.at(sent + there)},
                                       {relay.at(sent + there + back)}});
                }
                return samples;
            };
            const auto before = by_relay(kEpoch + 50'000'000);
            const auto after = by_relay(end - 50'000'000);
            const NodeInterval taken{before.front().sent_leader_ns,
                                     after.back().received_leader_ns};
            const ClockCorrection way =
                measure_clock(relay_before, {}, relay_after, taken).correction;
            const NodeInterval valid{{node.at(kEpoch)}, {node.at(end)}};
            const ClockMeasurement measured =
                measure_clock(taken_by_relay(before, way), {}, taken_by_relay(after, way), valid);
            for (std::int64_t t = kEpoch; t <= end; t += kSecond / 10)
                CHECK(node.error_at(measured.correction, t) <= measured.correction.bound_ns);
            CHECK(measured.correction.bound_ns < 1'500'000);
            CHECK(measured.correction.bound_ns > way.bound_ns);
        }
    }

    TEST_CASE("clock: a relay's words that no clock says are left out, the others stay in bounds") {
        constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
        const std::vector<PingSample> said{{{kMost}, {0}, {-kMost}},
                                           {{-kMost}, {0}, {kMost}},
                                           {{10}, {0}, {5}},
                                           {{10}, {kMost}, {15}},
                                           {{10}, {12}, {15}}};
        ClockCorrection relay{{0}, kMost, 1e9, kMost};
        const auto taken = taken_by_relay(said, relay);
        REQUIRE(taken.size() == 1);
        CHECK(taken[0].sent_leader_ns.value >= -kFarthestNs);
        CHECK(taken[0].received_leader_ns.value <= kFarthestNs);
    }

    TEST_CASE("clock: a sweep pings a few at a time, and ends for who is silent") {
        std::vector<std::size_t> asked;
        std::vector<std::pair<std::size_t, std::size_t>> ended;
        std::uint64_t id = 0;
        std::vector<std::pair<std::size_t, std::uint64_t>> unanswered;
        PingSweep sweep(
            {0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
            [&](std::size_t target) {
                unanswered.emplace_back(target, ++id);
                return PingSweep::Sent{id, {100}};
            },
            [&](std::size_t target, const std::vector<PingSample>& samples) {
                ended.emplace_back(target, samples.size());
            });
        auto now = std::chrono::steady_clock::now();
        sweep.go_on(now);
        CHECK(unanswered.size() == 8);
        CHECK_FALSE(sweep.take(9, 1, {0}, {200}));
        CHECK_FALSE(sweep.take(0, 2, {0}, {200}));
        // 3 never answers, the others at once.
        while (!sweep.over()) {
            const auto answered = std::exchange(unanswered, {});
            bool any = false;
            for (const auto& [target, ping] : answered) {
                if (target == 3) continue;
                any = true;
                CHECK(sweep.take(target, ping, {150}, {200}));
            }
            if (!any) now += PingSweep::kPingLimit + std::chrono::milliseconds(1'000);
            sweep.go_on(now);
        }
        REQUIRE(ended.size() == 10);
        CHECK(ended.back() == std::pair<std::size_t, std::size_t>(3, 0));
        CHECK(ended.front().second >= PingPlan{}.least);
    }

    TEST_CASE("clock: offset and drift are inside the bound, whatever the asymmetry") {
        std::mt19937_64 random(20);
        for (const double drift : {0.0, 50'000.0, -120'000.0}) {
            for (const std::int64_t offset : {0l, 1 * kSecond, -3'000'000l}) {
                const Node node{offset, drift};
                const std::int64_t end = kEpoch + 2 * kSecond;
                const auto before = epoch(node, kEpoch, random);
                const auto after = epoch(node, end, random);
                const ClockMeasurement measured =
                    measure_clock(before, {}, after, {{node.at(kEpoch)}, {node.at(end)}});
                CHECK(measured.correction.bound_ns < 400'000);
                CHECK(measured.pings == 24);
                for (std::int64_t t = kEpoch; t <= end; t += kSecond / 8)
                    CHECK(node.error_at(measured.correction, t) <= measured.correction.bound_ns);
            }
        }
    }

    TEST_CASE("clock: one-way delay all on one side reaches the bound and does not pass it") {
        const Node node{1'000, 0};
        const std::vector<PingSample> there{node.ping(kEpoch, 100'000, 0)};
        const std::vector<PingSample> back{node.ping(kEpoch + kSecond, 0, 100'000)};
        const ClockMeasurement measured =
            measure_clock(there, {}, back, {{node.at(kEpoch)}, {node.at(kEpoch + kSecond)}});
        CHECK(measured.best_rtt_ns == 100'000);
        CHECK(node.error_at(measured.correction, kEpoch + 1000) > 49'000);
        for (std::int64_t t = kEpoch; t <= kEpoch + kSecond; t += kSecond / 4)
            CHECK(node.error_at(measured.correction, t) <= measured.correction.bound_ns);
    }

    TEST_CASE("clock: one epoch alone bounds the past by the drift that is possible") {
        const Node node{5'000'000, 50'000};
        std::mt19937_64 random(21);
        const std::int64_t start = kEpoch - 10 * kSecond;
        const auto after = epoch(node, kEpoch, random);
        const ClockMeasurement measured =
            measure_clock({}, {}, after, {{node.at(start)}, {node.at(kEpoch)}});
        CHECK(measured.correction.bound_ns > 1'000'000);
        CHECK(measured.correction.bound_ns < 6'000'000);
        for (std::int64_t t = start; t <= kEpoch; t += kSecond)
            CHECK(node.error_at(measured.correction, t) <= measured.correction.bound_ns);
    }

    TEST_CASE("clock: epochs so close that their slope is noise don't make it the drift") {
        const Node node{-7'000, 20'000};
        std::mt19937_64 random(22);
        const std::int64_t start = kEpoch - 10 * kSecond;
        const auto before = epoch(node, kEpoch, random);
        const auto after = epoch(node, kEpoch + 20'000'000, random);
        const ClockMeasurement measured =
            measure_clock(before, {}, after, {{node.at(start)}, {node.at(kEpoch + 32'000'000)}});
        CHECK(measured.correction.bound_ns < 6'000'000);
        for (std::int64_t t = start; t <= kEpoch; t += kSecond)
            CHECK(node.error_at(measured.correction, t) <= measured.correction.bound_ns);
    }

    TEST_CASE("clock: a sample in between that contradicts the line widens the bound") {
        const Node node{0, 0};
        const Node stepped{300'000, 0};
        const std::vector<PingSample> before{node.ping(kEpoch, 10'000, 10'000)};
        const std::vector<PingSample> during{stepped.ping(kEpoch + kSecond, 10'000, 10'000)};
        const std::vector<PingSample> after{node.ping(kEpoch + 2 * kSecond, 10'000, 10'000)};
        const ClockMeasurement measured = measure_clock(
            before, during, after, {{node.at(kEpoch)}, {node.at(kEpoch + 2 * kSecond)}});
        CHECK(measured.correction.bound_ns >= 300'000);
    }

    TEST_CASE("clock: no sample at all bounds nothing") {
        const ClockMeasurement measured = measure_clock({}, {}, {}, {{0}, {kSecond}});
        CHECK(measured.correction.bound_ns == std::numeric_limits<std::int64_t>::max());
        CHECK(measured.pings == 0);
    }

    TEST_CASE("clock: samples that no clock gives are left out and overflow nothing") {
        constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
        const Node node{0, 0};
        std::vector<PingSample> before{{{kEpoch}, {kLeast}, {kEpoch + 1}},
                                       {{kEpoch + 10}, {kEpoch}, {kEpoch}},
                                       node.ping(kEpoch, 5'000, 5'000)};
        const ClockMeasurement measured =
            measure_clock(before, {}, {}, {{kEpoch}, {kEpoch + kSecond}});
        CHECK(measured.best_rtt_ns == 10'000);
        CHECK(measured.correction.leader_ns({kLeast}).value <= -kFarthestNs / 2);
    }

    TEST_CASE("clock: the inverse leads back") {
        const ClockCorrection correction{{kEpoch}, 1'234'567'890, 51'234.5, 10};
        for (const std::int64_t t : {kEpoch - 100 * kSecond, kEpoch, kEpoch + 3'600 * kSecond}) {
            const Nanoseconds back = correction.node_ns(correction.leader_ns({t}));
            CHECK(std::abs(back.value - t) <= 1);
        }
    }

    TEST_CASE("ping: an epoch ends when further pings no longer help") {
        PingEpoch epoch{PingPlan{}};
        for (int sent = 1; !epoch.done(); ++sent)
            epoch.add({{kEpoch}, {kEpoch}, {kEpoch + (sent == 5 ? 50'000 : 90'000)}});
        CHECK(epoch.samples().size() == 5 + PingPlan{}.idle);  // the fifth was the quickest
    }

    TEST_CASE("ping: an epoch in which each ping is quicker than the last ends at its most") {
        PingEpoch epoch{PingPlan{}};
        for (std::int64_t rtt = 1'000'000'000; !epoch.done(); rtt = rtt * 9 / 10)
            epoch.add({{kEpoch}, {kEpoch}, {kEpoch + rtt}});
        CHECK(epoch.samples().size() == PingPlan{}.most);
    }
}
