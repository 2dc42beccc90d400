// Rounds of short blocks: each variant once a round, in another order each time, so that what the machine does to one it does to all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "schema/ticks.hpp"
#include "tests/bench/core_probe.hpp"

namespace ringside::bench {

inline std::int64_t now_ns() {
    return schema::read_clock(CLOCK_MONOTONIC).value;
}

struct Variant {
    std::string name;
    long pairs;                           ///< in one block
    std::function<void()> before;         ///< not timed; may be empty
    std::function<void(long pairs)> run;  ///< timed
    std::vector<double> ns{};             ///< a pair, of each block
    std::vector<double> probes{};         ///< probe_core() beside each block, the worse one
};

/// @return a timed loop of pairs with nothing between begin and end
template <class Pair>
std::function<void(long)> tight(Pair& pair) {
    return [&pair](long pairs) {
        for (long i = 0; i < pairs; ++i) {
            pair.begin(static_cast<std::uint64_t>(i));
            asm volatile("" ::: "memory");
            pair.end(static_cast<std::uint64_t>(i));
        }
    };
}

inline void run_block(Variant& variant) {
    if (variant.before) variant.before();
    const double probe = probe_core();
    const std::int64_t start = now_ns();
    variant.run(variant.pairs);
    const std::int64_t end = now_ns();
    variant.ns.push_back(static_cast<double>(end - start) / static_cast<double>(variant.pairs));
    variant.probes.push_back(std::max(probe, probe_core()));
}

/// Rounds in which every block had the core to itself (core_probe.hpp; ratios.py takes the same limit).
inline int calm_rounds(const std::vector<Variant>& variants) {
    constexpr double kUsualProbe = 1.12;
    if (variants.empty()) return 0;
    double least = 1e9;
    for (const Variant& variant : variants)
        least = std::min(least, *std::min_element(variant.probes.begin(), variant.probes.end()));
    int calm = 0;
    for (std::size_t round = 0; round < variants.front().probes.size(); ++round) {
        calm += std::all_of(variants.begin(), variants.end(), [&](const Variant& variant) {
            return variant.probes[round] <= kUsualProbe * least;
        });
    }
    return calm;
}

/// So many rounds; on a core that is mostly half somebody else's more of them, until enough had it to themselves or patience ends.
inline void run_rounds(std::vector<Variant>& variants, int rounds) {
    constexpr int kEnough = 30, kPatience = 10;
    constexpr std::int64_t kPatienceNs = 60 * schema::kNsPerSecond;
    std::vector<Variant*> order;
    for (Variant& variant : variants) {
        order.push_back(&variant);
        run_block(variant);  // a first one that does not count
        variant.ns.clear();
        variant.probes.clear();
    }
    std::mt19937 random(20261122);
    const auto turn = [&](int count) {
        for (int round = 0; round < count; ++round) {
            std::shuffle(order.begin(), order.end(), random);
            for (Variant* variant : order) run_block(*variant);
        }
    };
    const std::int64_t begun = now_ns();
    turn(rounds);
    for (int more = 1; more < kPatience && now_ns() - begun < kPatienceNs &&
                       calm_rounds(variants) < std::min(kEnough, rounds);
         ++more)
        turn(rounds);
}

/// {"ns": {name: [ns a pair, of each block]}, "probes": {name: [of each block]}, NUMBERS}
inline void print_json(const std::vector<Variant>& variants, const std::string& numbers) {
    const auto print_lists = [&](const char* title, std::vector<double> Variant::*lists) {
        std::printf("\"%s\": {", title);
        for (std::size_t i = 0; i < variants.size(); ++i) {
            std::printf("%s\"%s\": [", i == 0 ? "" : ", ", variants[i].name.c_str());
            const std::vector<double>& list = variants[i].*lists;
            for (std::size_t k = 0; k < list.size(); ++k)
                std::printf("%s%.3f", k == 0 ? "" : ", ", list[k]);
            std::printf("]");
        }
        std::printf("}");
    };
    std::printf("{");
    print_lists("ns", &Variant::ns);
    std::printf(", ");
    print_lists("probes", &Variant::probes);
    std::printf("%s}\n", numbers.c_str());
}

}  // namespace ringside::bench
