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

inline void run_rounds(std::vector<Variant>& variants, int rounds) {
    std::vector<Variant*> order;
    for (Variant& variant : variants) {
        order.push_back(&variant);
        run_block(variant);  // a first one that does not count
        variant.ns.clear();
        variant.probes.clear();
    }
    std::mt19937 random(20261122);
    for (int round = 0; round < rounds; ++round) {
        std::shuffle(order.begin(), order.end(), random);
        for (Variant* variant : order) run_block(*variant);
    }
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
