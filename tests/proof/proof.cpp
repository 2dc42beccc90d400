// The proof of the ring: explores the shipped source on rings of 2 and 4 cells, and demands that every planted mutant is caught.
//
//     proof [--long] [--only NAME] [--history]      NAME: shipped, or a mutant's name   --history: print the run that caught it
//
// Exit status: 0 the shipped ring holds and all mutants are caught, 1 otherwise, 2 usage.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ostream>
#include <streambuf>
#include <string>

#include "model.hpp"
#include "mutants.hpp"
#include "scenario.hpp"

namespace ringside::proof {
namespace {

const char* g_failure = nullptr;
ScenarioBase* (*g_make)(void* memory, const Plan& plan) = nullptr;
const Plan* g_plan = nullptr;

alignas(64) unsigned char g_memory[sizeof(Scenario<shipped>)];

template <class Ring>
ScenarioBase* make(void* memory, const Plan& plan) {
    static_assert(sizeof(Scenario<Ring>) <= sizeof g_memory);
    return ::new (memory) Scenario<Ring>(plan);
}

/// One for each number of threads, whatever ring: Relacy's templates are slow to compile.
template <unsigned kThreads>
struct Suite : rl::test_suite<Suite<kThreads>, static_cast<rl::thread_id_t>(kThreads)> {
    Suite() : scenario(g_make(g_memory, *g_plan)) {}
    ~Suite() { scenario->~ScenarioBase(); }
    Suite(const Suite&) = delete;
    Suite& operator=(const Suite&) = delete;
    void thread(unsigned index) { scenario->thread(index); }
    void after() { scenario->after(); }
    ScenarioBase* scenario;
};

constexpr Plan kPlans[] = {
    {.name = "2 cells, one look",
     .capacity = 2,
     .first = {1, 1, 1},
     .passes = 1,
     .whole = Whole::kAlways},
    {.name = "2 cells", .capacity = 2, .first = {1, 1, 1, 1}, .passes = 3},
    {.name = "2 cells, records of 2", .capacity = 2, .first = {2, 1, 1, 2}, .passes = 3},
    {.name = "4 cells, wrap", .capacity = 4, .first = {1, 2, 2, 1}, .passes = 3},
    {.name = "4 cells, batches", .capacity = 4, .first = {1, 1, 1, 2, 1}, .passes = 4, .batch = 2},
    {.name = "free lane",
     .capacity = 2,
     .first = {},
     .passes = 2,
     .second = {1, 1, 1},
     .whole = Whole::kLong},
    {.name = "free lane, full at once",
     .capacity = 2,
     .first = {},
     .passes = 2,
     .second = {2, 1},
     .whole = Whole::kLong},
    {.name = "next agent",
     .capacity = 2,
     .first = {1, 1, 1},
     .passes = 2,
     .take_over = 1,
     .next_passes = 2,
     .batch = 1},
    {.name = "next thread", .capacity = 2, .first = {1, 1, 1}, .passes = 5, .second = {1, 1, 1}},
    {.name = "next thread, wrap", .capacity = 4, .first = {1, 2}, .passes = 5, .second = {2, 1, 2}},
    {.name = "grows, one look",
     .capacity = 2,
     .first = {1, 1, 1},
     .passes = 1,
     .rings = 2,
     .whole = Whole::kLong},
    {.name = "grows", .capacity = 2, .first = {1, 1, 1, 1, 1, 1}, .passes = 4, .rings = 2},
    {.name = "grows, records of 2",
     .capacity = 2,
     .first = {1, 2, 2, 1},
     .passes = 4,
     .batch = 2,
     .rings = 2},
    {.name = "grows, next agent",
     .capacity = 2,
     .first = {1, 1, 1, 1},
     .passes = 2,
     .take_over = 1,
     .next_passes = 3,
     .batch = 1,
     .rings = 2},
    {.name = "grows, next thread",
     .capacity = 2,
     .first = {1, 1, 1},
     .passes = 5,
     .second = {1, 1, 1},
     .rings = 2},
    {.name = "freed late",
     .capacity = 4,
     .first = {1, 1, 1, 1, 1, 1},
     .passes = 4,
     .batch = 2,
     .late = true},
    {.name = "grows, freed late",
     .capacity = 2,
     .first = {1, 1, 1, 1, 1},
     .passes = 4,
     .batch = 1,
     .rings = 2,
     .late = true},
    {.name = "next thread and agent",
     .capacity = 2,
     .first = {1, 1},
     .passes = 3,
     .second = {1, 1, 1},
     .take_over = 1,
     .next_passes = 4,
     .batch = 1},
};

struct Search {
    rl::scheduler_type_e kind;
    unsigned switches;           ///< forced ones, at most: of sched_bound
    rl::iteration_t iterations;  ///< of sched_random; the others end when they are through
};

struct Outcome {
    bool good = true;
    rl::iteration_t iterations = 0;
    std::string caught_by;
    std::string history;
};

/// What Relacy says, in memory of its own: what is allocated while it runs must not be freed afterwards.
class Text : public std::streambuf {
public:
    Text() { setp(g_text, g_text + sizeof g_text); }
    std::string str() const { return {pbase(), pptr()}; }

private:
    static inline char g_text[1 << 20];
};

Outcome explore(const Plan& plan, const Search& search) {
    Text text;
    std::ostream out(&text);
    std::ostream nowhere(nullptr);
    rl::test_params params;
    params.iteration_count = search.iterations;
    params.search_type = search.kind;
    params.context_bound = search.switches;
    params.output_stream = &out;
    params.progress_stream = &nowhere;
    g_plan = &plan;
    g_failure = nullptr;
    Outcome outcome;
    switch (plan.threads()) {
        case 2:
            outcome.good = rl::simulate<Suite<2>>(params);
            break;
        case 3:
            outcome.good = rl::simulate<Suite<3>>(params);
            break;
        default:
            outcome.good = rl::simulate<Suite<4>>(params);
    }
    outcome.iterations = params.stop_iteration;
    if (outcome.good) return outcome;
    outcome.caught_by = g_failure != nullptr ? g_failure : rl::test_result_str(params.test_result);
    outcome.history = text.str();
    return outcome;
}

struct Options {
    bool whole = false;
    bool history = false;
    std::string only;
};

class Proof {
public:
    explicit Proof(const Options& options) : options_(options) {}

    /// @return whether all is as it should be
    bool run() {
        if (wanted(shipped::kName)) prove_shipped();
        std::printf("\n%-34s %-58s %s\n", "mutant", "caught by", "after N iterations");
        std::fflush(stdout);
        hunt(Mutants());
        std::printf("\n%u of %u mutants caught\n", caught_, hunted_);
        return good_ && caught_ == hunted_;
    }

private:
    bool wanted(const char* name) const { return options_.only.empty() || options_.only == name; }

    void prove_shipped() {
        g_make = &make<shipped>;
        std::printf("%-34s %-28s %12s %8s\n", "scenario of the shipped ring", "search",
                    "iterations", "seconds");
        const rl::iteration_t random = options_.whole ? 20000000 : 150000;
        for (const Plan& plan : kPlans) {
            const Search few = search_of(Hunt::kBound, plan);
            if (plan.whole == Whole::kAlways || (options_.whole && plan.whole == Whole::kLong))
                prove(plan, {rl::sched_full, 0, 0}, "all runs");
            prove(plan, few, "up to " + std::to_string(few.switches) + " forced switches");
            prove(plan, {rl::sched_random, 0, random}, "random");
        }
    }

    void prove(const Plan& plan, const Search& search, const std::string& kind) {
        const auto begin = std::chrono::steady_clock::now();
        const Outcome outcome = explore(plan, search);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        std::printf("%-34s %-28s %12llu %8.1f%s\n", plan.name, kind.c_str(),
                    static_cast<unsigned long long>(outcome.iterations), took.count(),
                    outcome.good ? "" : "  FAILED");
        std::fflush(stdout);
        if (outcome.good) return;
        good_ = false;
        std::printf("%s\n%s\n", outcome.caught_by.c_str(), outcome.history.c_str());
    }

    enum class Hunt { kShort, kBound, kRandom };

    Search search_of(Hunt kind, const Plan& plan) const {
        if (kind == Hunt::kShort) return {rl::sched_random, 0, 2000};
        if (kind == Hunt::kRandom)
            return {rl::sched_random, 0, options_.whole ? 2000000u : 200000u};
        return {rl::sched_bound, (options_.whole ? 6 : 5) - plan.threads(), 0};
    }

    template <class... Rings>
    void hunt(RingList<Rings...>) {
        (hunt_one<Rings>(), ...);
    }

    template <class Ring>
    void hunt_one() {
        if (!wanted(Ring::kName)) return;
        ++hunted_;
        g_make = &make<Ring>;
        rl::iteration_t before = 0;
        // Quick ones first; what only a rare run shows is found by going through all runs with few switches.
        for (const Hunt kind : {Hunt::kShort, Hunt::kBound, Hunt::kRandom}) {
            for (const Plan& plan : kPlans) {
                const Outcome outcome = explore(plan, search_of(kind, plan));
                before += outcome.iterations;
                if (outcome.good) continue;
                ++caught_;
                std::printf("%-34s %-58s %llu\n", Ring::kName,
                            (std::string(plan.name) + ": " + outcome.caught_by).c_str(),
                            static_cast<unsigned long long>(before));
                if (options_.history) std::printf("%s\n", outcome.history.c_str());
                std::fflush(stdout);
                return;
            }
        }
        std::printf("%-34s %-58s %llu\n", Ring::kName, "SURVIVED",
                    static_cast<unsigned long long>(before));
    }

    Options options_;
    bool good_ = true;
    unsigned hunted_ = 0;
    unsigned caught_ = 0;
};

}  // namespace

void fail(const char* what) {
    if (g_failure == nullptr) g_failure = what;
    rl::ctx().fail_test(what, rl::test_result_user_assert_failed,
                        rl::debug_info("check", __FILE__, __LINE__));
}

}  // namespace ringside::proof

int main(int argc, char** argv) {
    ringside::proof::Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument == "--long") {
            options.whole = true;
        } else if (argument == "--history") {
            options.history = true;
        } else if (argument == "--only" && i + 1 < argc) {
            options.only = argv[++i];
        } else {
            std::fprintf(stderr, "usage: proof [--long] [--only NAME] [--history]\n");
            return 2;
        }
    }
    return ringside::proof::Proof(options).run() ? 0 : 1;
}
