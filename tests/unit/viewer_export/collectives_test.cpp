// Collectives joined from ranges: members, arrivals, who came last, who is late.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

#include "collectives_job.hpp"
#include "sample_job.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export::model;
namespace fbs = ringside::fbs;
namespace schema = ringside::schema;

namespace {

/// Four ranks of one node, a collective a millisecond, in which `late` (-1: nobody) comes `by_us` after all others, which come in any order within 50 us.
CollectivesJob training(int late, std::int64_t by_us, int count = 200) {
    CollectivesJob made;
    made.ranks(made.node(0), 4, 4);
    std::mt19937 random(7);
    std::int64_t released = 0;
    for (int i = 1; i <= count; ++i) {
        std::int64_t arrivals[4], last = 0;
        for (int rank = 0; rank < 4; ++rank) {
            arrivals[rank] = released + 1000 + static_cast<std::int64_t>(random() % 50) +
                             (rank == late ? by_us : 0);
            last = std::max(last, arrivals[rank]);
        }
        released = last + 20;
        for (std::uint32_t rank = 0; rank < 4; ++rank)
            made.add(rank, static_cast<std::uint64_t>(i), arrivals[rank], released);
    }
    return made;
}

}  // namespace

TEST_CASE("collectives: one of all ranks, by arrival, with the wait that the last one caused") {
    CollectivesJob made;
    made.ranks(made.node(0), 3, 3);
    made.add(0, 1, 100, 500);
    made.add(1, 1, 300, 510);
    made.add(2, 1, 110, 490);
    const Collectives all = made.join();
    REQUIRE(all.all.size() == 1);
    const Collective& one = all.all[0];
    CHECK(one.complete);
    CHECK(all.groups[one.group].label == "world");
    CHECK(all.groups[one.group].size == 3);
    REQUIRE(all.last(one) != nullptr);
    CHECK(all.last(one)->rank == 1);
    CHECK(one.gap_ns == 190'000);
    CHECK(all.wait_ns(one) == 390'000);
    CHECK(all.work_ns(one) == 210'000);
    CHECK(all.groups[0].members[1].last == 1);
    CHECK(all.groups[0].members[1].wait_ns == 390'000);
}

TEST_CASE("collectives: none, and a group of one, in which nobody is late") {
    CollectivesJob made;
    CHECK(made.join().empty());
    made.ranks(made.node(0), 1, 1);
    CHECK(made.join().empty());
    for (int i = 1; i < 100; ++i)
        made.add(0, static_cast<std::uint64_t>(i), 1000 * i, 1000 * i + 10);
    const Collectives all = made.join();
    CHECK(all.all.size() == 99);
    CHECK(all.last(all.all[5]) == nullptr);
    CHECK(all.groups[0].late.verdict == Late::kAlone);
}

TEST_CASE("collectives: whoever is not there is missing, by rank, and nobody is last") {
    CollectivesJob made;
    made.ranks(made.node(0), 3, 4);
    made.add(0, 1, 100, 500);
    made.add(2, 1, 300, 510).end = End::kOpen;
    made.add(1, 2, 600, 700);
    const Collectives all = made.join();
    REQUIRE(all.all.size() == 2);
    CHECK_FALSE(all.all[0].complete);
    CHECK(all.missing(all.all[0]) == std::vector<std::int32_t>{1, 3});
    CHECK(all.last(all.all[0]) == nullptr);
    CHECK_FALSE(all.work_ns(all.all[0]));
    CHECK(all.groups[0].late.verdict == Late::kIncomplete);
}

TEST_CASE("collectives: without groups the members are those that were ever seen in it") {
    CollectivesJob made;
    made.with_groups = false;
    made.ranks(made.node(0), 2, 0);
    made.add(0, 1, 100, 500);
    made.add(1, 1, 300, 510);
    made.add(1, 2, 600, 700);
    const Collectives all = made.join();
    REQUIRE(all.all.size() == 2);
    CHECK(all.all[0].complete);
    CHECK(all.groups[0].id == 0);
    CHECK(all.missing(all.all[1]) == std::vector<std::int32_t>{0});
}

TEST_CASE("collectives: groups of one label are one where their id is, and only there") {
    CollectivesJob made;
    made.ranks(made.node(0), 4, 2);
    made.job.processes[2].groups[0].id = made.job.processes[3].groups[0].id = 78;
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
        made.job.processes[rank].groups[0].rank = static_cast<std::int32_t>(rank % 2);
        made.add(rank, 1, 100 + rank, 500);
    }
    const Collectives all = made.join();
    REQUIRE(all.all.size() == 2);
    CHECK(all.all[0].complete);
    CHECK(all.last(all.all[1])->rank == 1);
    CHECK(all.groups[0].label == "world");
    CHECK(all.groups[1].label == "world-2");
}

TEST_CASE("collectives: a process whose page has forgotten the group is in the one of that label") {
    CollectivesJob made;
    made.ranks(made.node(0), 2, 2);
    made.job.processes[1].groups.clear();
    made.add(0, 1, 100, 500);
    made.add(1, 1, 100, 500);
    const Collectives all = made.join();
    REQUIRE(all.all.size() == 1);
    CHECK(all.all[0].complete);
}

TEST_CASE("collectives: groups without a name are told apart by their sequences") {
    CollectivesJob made;
    made.with_groups = false;
    made.ranks(made.node(0), 2, 0);
    for (const std::uint32_t rank : {0u, 1u}) {
        made.add(rank, 5'000'000, 100, 200, "gloo:barrier", "");
        made.add(rank, 5'000'001, 300, 400, "gloo:barrier", "");
        made.add(rank, 9'000'001, 500, 600, "gloo:barrier", "");
    }
    const Collectives all = made.join();
    REQUIRE(all.groups.size() == 2);
    CHECK(all.groups[0].label == "unnamed-1");
    CHECK(all.groups[1].label == "unnamed-2");
    CHECK(all.all[2].group == 1);
}

TEST_CASE("collectives: a process counts once, however many ranges it has in one") {
    CollectivesJob made;
    made.ranks(made.node(0), 2, 2);
    made.add(0, 1, 100, 150);
    made.add(0, 1, 160, 500);
    made.add(1, 1, 120, 510);
    const Collectives all = made.join();
    REQUIRE(all.all[0].count == 2);
    CHECK(all.begin(all.all[0])->begin_ns == 100'000);
    CHECK(all.begin(all.all[0])->end_ns == 500'000);
}

TEST_CASE("collectives: one without a number is counted and joined with nothing") {
    CollectivesJob made;
    made.ranks(made.node(0), 2, 2);
    made.add(0, 0, 100, 150);
    made.add(1, 0, 100, 150);
    const Collectives all = made.join();
    CHECK(all.unknown == 2);
    CHECK(all.all.empty());
    CHECK_FALSE(all.empty());
}

TEST_CASE("collectives: members in different functions are an error of the program's") {
    CollectivesJob made;
    made.ranks(made.node(0), 3, 3);
    made.add(0, 1, 100, 500);
    made.add(1, 1, 100, 500);
    made.add(2, 1, 100, 500, "MPI_Bcast");
    const Collectives all = made.join();
    CHECK(all.all[0].names_differ);
    CHECK(made.job.names[all.all[0].name] == "MPI_Allreduce");
}

TEST_CASE("collectives: of two nodes somebody is last only beyond the bounds of both clocks") {
    for (const auto& [apart_us, known] : {std::pair{30, false}, {31, true}}) {
        CollectivesJob made;
        made.ranks(made.node(10), 1, 2);
        made.ranks(made.node(20), 1, 2);
        made.add(0, 1, 100, 500);
        made.add(1, 1, 100 + apart_us, 500);
        const Collectives all = made.join();
        CHECK(all.all[0].bound_ns == 30'000);
        CHECK((all.last(all.all[0]) != nullptr) == known);
        made.job.corrected = false;
        const Collectives uncorrected = made.join();
        CHECK(uncorrected.last(uncorrected.all[0]) == nullptr);
    }
}

TEST_CASE("collectives: a neighbour that is surely before does not hide one that may not be") {
    CollectivesJob made;
    made.ranks(made.node(0), 2, 3);
    made.ranks(made.node(50), 1, 3);
    made.add(0, 1, 110, 500);
    made.add(1, 1, 120, 500);  // last, 10 us after its neighbour by one clock
    made.add(2, 1, 100, 500);  // may be 50 us later than that
    const Collectives all = made.join();
    CHECK(all.last(all.all[0]) == nullptr);
}

TEST_CASE("late rank: one that computes longer is named, with what the others waited") {
    const CollectivesJob made = training(2, 200);
    const Collectives all = made.join();
    const CollectiveGroup& world = all.groups[0];
    CHECK(world.late.verdict == Late::kNamed);
    CHECK(world.members[world.late.member].rank == 2);
    CHECK(world.members[world.late.member].last == 200);
    CHECK(world.late.gap_ns > 150'000);
    CHECK(world.members[world.late.member].wait_ns > 200 * 3 * 150'000);
}

TEST_CASE("late rank: nobody is where ranks come in any order") {
    const Collectives all = training(-1, 0).join();
    CHECK(all.groups[0].late.verdict == Late::kChance);
}

TEST_CASE("late rank: last for a spell is not last all along") {
    CollectivesJob made = training(-1, 0);
    for (Lane& lane : made.job.lanes) {
        for (Range& range : lane.ranges) {  // rank 1 in 80 of 200, by much
            if (range.argument > 60 && range.argument <= 140)
                range.begin_ns += lane.process == 1 ? 15'000 : -400'000;
        }
    }
    const Collectives all = made.join();
    CHECK(all.groups[0].members[1].last > 80);
    CHECK(at_least(all.groups[0].members[1].last, 200, 0.25) < 1e-5);
    CHECK(all.groups[0].late.verdict == Late::kChance);
}

TEST_CASE("late rank: of many ranks, too, it must be last for most of the time") {
    for (const auto& [until, verdict] : {std::pair{90, Late::kChance}, {120, Late::kNamed}}) {
        CollectivesJob made;
        made.ranks(made.node(0), 16, 16);
        for (int i = 1; i <= 200; ++i) {  // else they take turns
            const auto last = static_cast<std::uint32_t>(i <= until ? 5 : i % 16);
            for (std::uint32_t rank = 0; rank < 16; ++rank)
                made.add(rank, static_cast<std::uint64_t>(i),
                         1000 * i + 10 * rank + (rank == last ? 300 : 0), 1000 * i + 500);
        }
        const Collectives all = made.join();
        CHECK(all.groups[0].members[all.groups[0].late.member].rank == 5);
        CHECK(all.groups[0].late.verdict == verdict);
    }
}

TEST_CASE("late rank: of two, one that is always last is named") {
    CollectivesJob made;
    made.ranks(made.node(0), 2, 2);
    for (int i = 1; i <= 24; ++i) {
        made.add(0, static_cast<std::uint64_t>(i), 1000 * i, 1000 * i + 400);
        made.add(1, static_cast<std::uint64_t>(i), 1000 * i + 300, 1000 * i + 400);
    }
    CHECK(made.join().groups[0].late.verdict == Late::kNamed);
}

TEST_CASE("late rank: always last by next to nothing is not late") {
    const Collectives all = training(1, 40).join();
    CHECK(all.groups[0].late.verdict == Late::kSmall);
}

TEST_CASE("late rank: few collectives prove nothing") {
    CHECK(training(2, 200, 5).join().groups[0].late.verdict == Late::kChance);
    CHECK(training(2, 200, 8).join().groups[0].late.verdict == Late::kNamed);
}

TEST_CASE("late rank: who leaves each collective last and so comes last to the next is not late") {
    CollectivesJob made;
    made.ranks(made.node(0), 4, 4);
    for (int i = 1; i <= 100; ++i) {
        const std::int64_t at = 300 * i;
        for (std::uint32_t rank = 0; rank < 4; ++rank)  // as a tree lets them go: rank 3 last
            made.add(rank, static_cast<std::uint64_t>(i), at + 30 * rank, at + 200 + 30 * rank);
    }
    const Collectives all = made.join();
    CHECK(all.groups[0].members[3].last == 100);
    CHECK(all.groups[0].late.gap_ns == 30'000);
    CHECK(all.groups[0].late.verdict == Late::kCameOut);
}

TEST_CASE("late rank: who was held up by another group's collective, or a message, is not late") {
    for (const bool message : {false, true}) {
        CollectivesJob made;
        made.ranks(made.node(0), 3, 3);
        for (int i = 1; i <= 100; ++i) {
            const auto sequence = static_cast<std::uint64_t>(i);
            const std::int64_t at = 1000 * i;
            Range& held = made.add(2, sequence, at + 10, at + 500, "MPI_Recv", "pair");
            if (message) held.detail = schema::kMpiCall;
            for (std::uint32_t rank = 0; rank < 3; ++rank)
                made.add(rank, sequence, at + 200 + (rank == 2 ? 350 : 0), at + 600);
        }
        const Collectives all = made.join();
        const auto world = std::find_if(all.groups.begin(), all.groups.end(),
                                        [](const auto& each) { return each.label == "world"; });
        CHECK(world->members[2].last == 100);
        CHECK(world->late.verdict == Late::kCameOut);
    }
}

TEST_CASE("late rank: clocks that can't tell name nobody") {
    CollectivesJob made;
    made.ranks(made.node(1000), 2, 4);
    made.ranks(made.node(1000), 2, 4);
    for (int i = 1; i <= 100; ++i) {
        for (std::uint32_t rank = 0; rank < 4; ++rank)
            made.add(rank, static_cast<std::uint64_t>(i), 5000 * i + (rank == 2 ? 900 : 0),
                     5000 * i + 1000);
    }
    CHECK(made.join().groups[0].late.verdict == Late::kClocks);
}

TEST_CASE("at_least: the binomial tail") {
    CHECK(at_least(0, 10, 0.25) == doctest::Approx(1));
    CHECK(at_least(10, 10, 0.25) == doctest::Approx(std::pow(0.25, 10)));
    CHECK(at_least(9, 10, 0.5) == doctest::Approx(11.0 / 1024));
    CHECK(at_least(600'000, 1'000'000, 0.5) < 1e-300);
}

TEST_CASE("collectives: 64 ranks and 10,000 of theirs are quick") {
    CollectivesJob made;
    made.ranks(made.node(0), 64, 64);
    std::mt19937 random(3);
    for (int i = 1; i <= 10'000; ++i) {
        for (std::uint32_t rank = 0; rank < 64; ++rank)
            made.add(rank, static_cast<std::uint64_t>(i),
                     1000 * i + static_cast<std::int64_t>(random() % 100), 1000 * i + 200);
    }
    const auto begin = std::chrono::steady_clock::now();
    const Collectives all = made.join();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    CHECK(all.all.size() == 10'000);
    CHECK(all.groups[0].late.complete == 10'000);
    CHECK(taken.count() < 5);
    MESSAGE("64 ranks, 10,000 collectives: ", taken.count(), " s");
}

TEST_CASE("load: a process's groups are its dump's") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000, 0);
    fbs::GroupT group;
    group.id = 77;
    group.source = 4;
    group.label = "world";
    group.size = 4;
    group.rank = 3;
    dump.end(0, 1000, group);
    dump.footer(1000);
    dump.write(directory / "alpha.rsd");
    const Job job = loaded(directory.path());
    REQUIRE(job.processes[0].groups.size() == 1);
    const Group& read = job.processes[0].groups[0];
    CHECK(read.id == 77);
    CHECK(read.source == schema::SourceId::kMpi);
    CHECK(read.label == "world");
    CHECK(read.size == 4);
    CHECK(read.rank == 3);
}
