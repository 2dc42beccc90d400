// One thread, nobody drains while a block runs: the pair alone, around work, and switched off.
#include <cmath>

#include "program.hpp"

namespace ringside::bench {
namespace {

/// `pair` around work of `steps`.
template <class Pair>
std::function<void(long)> around(Pair& pair, Work& work, int steps) {
    return [&pair, &work, steps](long pairs) {
        for (long i = 0; i < pairs; ++i) {
            pair.begin(static_cast<std::uint64_t>(i));
            work.run(static_cast<std::uint64_t>(i), steps);
            pair.end(static_cast<std::uint64_t>(i));
        }
    };
}

/// @return how many steps take `ns`, by the quickest of many tries
int steps_of(Work& work, double ns) {
    constexpr int kSteps = 64;
    constexpr long kTries = 2000;
    double best = 1e9;
    for (int round = 0; round < 200; ++round) {
        const std::int64_t start = now_ns();
        for (long i = 0; i < kTries; ++i) work.run(static_cast<std::uint64_t>(i), kSteps);
        best = std::min(best, static_cast<double>(now_ns() - start) / kTries / kSteps);
    }
    return std::max(1, static_cast<int>(std::lround(ns / best)));
}

using Variants = std::vector<Variant>;
using Before = std::function<void()>;

const char* const kTwice[] = {"", " again"};
/// So few that a peer's buffers hold them; its daemon empties them in between.
constexpr long kPeerPairs = 6000;

/// All ways of one program, and a peer's.
struct Ways {
    Program program;
    Work work;
    OneKeptName one_kept{};
    OneRegisteredName one_registered{*program.registered};
    OneApiName one_api{};
    OneNvtxName one_nvtx{};
    Nothing nothing{};
    UftraceFunction uftrace{};
#ifdef RINGSIDE_BENCH_LTTNG
    LttngId lttng_id{};
    LttngName lttng_name{program.names};
#endif
};

void add_tight(Variants& variants, Ways& ways, const Before& before) {
    Program& program = ways.program;
    const auto add = [&](const std::string& name, long pairs, auto run) {
        variants.push_back({"tight " + name, pairs, before, run});
    };
    for (const char* again : kTwice) {
        add(std::string("floor") + again, kTightPairs, tight(program.floor));
        add(std::string("floor put") + again, kTightPairs, tight(program.floor_put));
    }
    add("id", kTightPairs, tight(ways.one_kept));
    add("200 ids", kTightPairs, tight(program.kept));
    add("nvtx id", kTightPairs, tight(ways.one_registered));
    add("name", kTightPairs, tight(program.api));
    add("nvtx name", kTightPairs, tight(program.nvtx));
    add("put name", kTightPairs, tight(program.api_put));
#ifdef RINGSIDE_BENCH_LTTNG
    for (const char* again : kTwice)
        add(std::string("lttng id") + again, kPeerPairs, tight(ways.lttng_id));
#endif
}

void add_around_work(Variants& variants, Ways& ways, const Before& before, double ns) {
    Program& program = ways.program;
    Work& work = ways.work;
    const int steps = steps_of(work, ns);
    const long pairs = static_cast<long>(1e6 / ns);
    const auto add = [&](const std::string& name, long count, auto run) {
        variants.push_back(
            {"work" + std::to_string(static_cast<int>(ns)) + " " + name, count, before, run});
    };
    add("bare", pairs, [&work, steps](long count) {
        for (long i = 0; i < count; ++i) {
            work.run(static_cast<std::uint64_t>(i), steps);
            compiler_barrier();
        }
    });
    PutTogether* put = &program.api_put;
    add("bare put", pairs, [&work, steps, put](long count) {
        for (long i = 0; i < count; ++i) {
            put->put(static_cast<std::uint64_t>(i));
            work.run(static_cast<std::uint64_t>(i), steps);
        }
    });
    for (const char* again : kTwice)
        add(std::string("floor") + again, pairs, around(program.floor, work, steps));
    add("id", pairs, around(ways.one_kept, work, steps));
    add("200 ids", pairs, around(program.kept, work, steps));
    add("nvtx id", pairs, around(ways.one_registered, work, steps));
    add("name", pairs, around(program.api, work, steps));
    add("nvtx name", pairs, around(program.nvtx, work, steps));
    add("put name", pairs, around(program.api_put, work, steps));
#ifdef RINGSIDE_BENCH_LTTNG
    const long peer_pairs = std::min(pairs, kPeerPairs);
    for (const char* again : kTwice)
        add(std::string("lttng id") + again, peer_pairs, around(ways.lttng_id, work, steps));
    add("lttng name", peer_pairs, around(ways.lttng_name, work, steps));
#endif
}

void add_off(Variants& variants, Ways& ways) {
    Program& program = ways.program;
    for (const char* again : kTwice) {
        variants.push_back(
            {std::string("off floor") + again, kTightPairs, nullptr, tight(program.floor)});
    }
    variants.push_back({"off nothing", 4 * kTightPairs, nullptr, tight(ways.nothing)});
    variants.push_back({"off id", 4 * kTightPairs, nullptr, tight(ways.one_kept)});
    variants.push_back({"off nvtx id", 4 * kTightPairs, nullptr, tight(ways.one_registered)});
    variants.push_back({"off name", 4 * kTightPairs, nullptr, tight(ways.one_api)});
    variants.push_back({"off nvtx name", 4 * kTightPairs, nullptr, tight(ways.one_nvtx)});
}

void keep_only(Variants& variants, const std::string& text) {
    std::erase_if(variants, [&](const Variant& variant) {
        return variant.name.find(text) == std::string::npos;
    });
}

void add_beside_uftrace(Variants& variants, Ways& ways, const Before& before) {
    Program& program = ways.program;
    Work& work = ways.work;
    constexpr double kNs = 85;
    const int steps = steps_of(work, kNs);
    variants.push_back({"work85 bare", kPeerPairs, before, [&work, steps](long count) {
                            for (long i = 0; i < count; ++i) {
                                work.run(static_cast<std::uint64_t>(i), steps);
                                compiler_barrier();
                            }
                        }});
    const auto add = [&](const std::string& name, auto& pair) {
        variants.push_back({"tight " + name, kPeerPairs, before, tight(pair)});
        variants.push_back({"work85 " + name, kPeerPairs, before, around(pair, work, steps)});
    };
    add("id", ways.one_kept);
    for (const char* again : kTwice) {
        add(std::string("floor") + again, program.floor);
        add(std::string("uftrace") + again, ways.uftrace);
    }
}

}  // namespace

int measure_beside_uftrace(int rounds) {
    pin(processors().back());
    const std::string directory = job_directory();
    CaptureSwitch capture(directory);
    capture.set(true);
    Ways ways;
    OwnLane lane = own_lane(directory, ways.program);
    Variants variants;
    add_beside_uftrace(variants, ways, [&lane] { lane.empty(); });
    run_rounds(variants, rounds);
    print_json(variants, ", \"lost\": " + std::to_string(lane.dropped()));
    return 0;
}

int measure_pairs(int rounds, const std::string& only) {
    pin(processors().back());
    const std::string directory = job_directory();
    CaptureSwitch capture(directory);
    capture.set(true);
    Ways ways;
    OwnLane lane = own_lane(directory, ways.program);
    const auto empty = [&lane] { lane.empty(); };
    Variants on;
    add_tight(on, ways, empty);
    for (const double ns : {85.0, 420.0}) add_around_work(on, ways, empty, ns);
    keep_only(on, only);
    run_rounds(on, rounds);
    // Off is off for all the process: its blocks stand together, with floors of their own.
    capture.set(false);
    Variants off;
    add_off(off, ways);
    keep_only(off, only);
    const std::uint64_t written = lane.written();
    run_rounds(off, rounds);
    on.insert(on.end(), off.begin(), off.end());
    print_json(on, ", \"lost\": " + std::to_string(lane.dropped()) + ", \"recorded_while_off\": " +
                       (lane.written() == written ? "false" : "true"));
    return 0;
}

}  // namespace ringside::bench
