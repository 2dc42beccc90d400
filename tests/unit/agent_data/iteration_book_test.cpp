// Which N iterations a process has had, out of boundaries and ranges that come in any order.
#include <doctest/doctest.h>

#include <string>

#include "agent/drain/iteration_book.hpp"

using namespace ringside;
using namespace ringside::agent;
using schema::RecordKind;

namespace {

/// A book, and names of which the id is the place.
struct Rig {
    explicit Rig(const IterationWish& wish, std::uint64_t since = 0) { book.start(wish, since); }

    void take(RecordKind kind, std::uint32_t name, std::uint64_t one, std::uint64_t two) {
        const std::uint64_t words[8] = {schema::RecordHeader{kind, 1, 0, {name}}.pack(), one, two};
        book.take(words, [&]() -> std::string_view { return names[name]; });
    }
    void boundary(std::uint64_t ticks, std::uint64_t number, std::uint32_t name = 1) {
        take(RecordKind::kIteration, name, ticks, number);
    }
    void range(std::uint64_t begin, std::uint64_t end, std::uint32_t name = 1) {
        take(RecordKind::kRange, name, begin, end);
    }

    std::string names[3] = {"", "step", "other"};
    IterationBook book;
};

}  // namespace

TEST_CASE("iterations: nothing is watched where none were asked for") {
    const Rig rig({});
    CHECK_FALSE(rig.book.watches());
    CHECK_FALSE(rig.book.watches_ranges());
    const Rig any({5, 1, ""});
    CHECK(any.book.watches());
    CHECK_FALSE(any.book.watches_ranges());
    CHECK(Rig({5, 1, "step"}).book.watches_ranges());
    CHECK_FALSE(any.book.seen().shown);
}

TEST_CASE("iterations: N of them have N + 1 boundaries, and those that come later change nothing") {
    Rig rig({3, 1, ""});
    for (std::uint64_t n = 7; n <= 9; ++n) rig.boundary(100 * n, n);
    CHECK(rig.book.seen().count == 2);
    CHECK(rig.book.seen().end_ticks == IterationReport::kNoEnd);
    for (std::uint64_t n = 10; n <= 5000; ++n) rig.boundary(100 * n, n);
    const IterationsSeen seen = rig.book.seen();
    CHECK(seen.name == "step");
    CHECK(seen.count == 3);
    CHECK(seen.first == 7);
    CHECK(seen.begin_ticks == 700);
    CHECK(seen.end_ticks == 1000);
}

TEST_CASE(
    "iterations: boundaries of several lanes count in their order, however they are drained") {
    Rig rig({3, 1, ""});
    for (const std::uint64_t n : {4, 5, 6, 8, 9, 10, 11}) rig.boundary(100 * n, n);
    CHECK(rig.book.seen().count == 3);
    CHECK(rig.book.seen().first == 8);
    // Another lane is drained later: what it holds came before.
    for (const std::uint64_t n : {7, 3, 2}) rig.boundary(100 * n, n);
    const IterationsSeen seen = rig.book.seen();
    CHECK(seen.first == 2);
    CHECK(seen.begin_ticks == 200);
    CHECK(seen.end_ticks == 500);
}

TEST_CASE("iterations: one that lacks a boundary is none of the N") {
    Rig rig({3, 1, ""});
    for (const std::uint64_t n : {7, 8, 10, 11, 12}) rig.boundary(100 * n, n);
    IterationsSeen seen = rig.book.seen();
    CHECK(seen.count == 2);
    CHECK(seen.first == 10);
    CHECK(seen.end_ticks == IterationReport::kNoEnd);
    rig.boundary(1300, 13);
    seen = rig.book.seen();
    CHECK(seen.count == 3);
    CHECK(seen.begin_ticks == 1000);
    CHECK(seen.end_ticks == 1300);
}

TEST_CASE("iterations: boundaries that two threads mark at once may change places") {
    Rig rig({3, 1, ""});
    const std::uint64_t numbers[] = {4, 6, 5, 7};
    for (std::uint64_t i = 0; i < 4; ++i) rig.boundary(100 * i + 100, numbers[i]);
    CHECK(rig.book.seen().count == 3);
    CHECK(rig.book.seen().first == 4);
}

TEST_CASE("iterations: the first begins at a multiple of the round number") {
    Rig rig({2, 10, ""});
    for (std::uint64_t n = 11; n < 20; ++n) rig.boundary(100 * n, n);
    CHECK(rig.book.seen().shown);
    CHECK_FALSE(rig.book.seen().begun);
    for (std::uint64_t n = 20; n < 60; ++n) rig.boundary(100 * n, n);
    const IterationsSeen seen = rig.book.seen();
    CHECK(seen.first == 20);
    CHECK(seen.begin_ticks == 2000);
    CHECK(seen.end_ticks == 2200);
}

TEST_CASE("iterations: without a name the one that comes first is the process's") {
    Rig rig({1, 1, ""});
    rig.boundary(300, 1, 2);
    rig.boundary(400, 2, 2);
    CHECK(rig.book.seen().name == "other");
    rig.boundary(200, 1, 1);
    CHECK(rig.book.seen().name == "step");
    CHECK(rig.book.seen().count == 0);
    Rig named({1, 1, "other"});
    for (std::uint64_t i = 1; i <= 4; ++i) named.boundary(100 * i, (i + 1) / 2, i % 2 == 0 ? 2 : 1);
    CHECK(named.book.seen().begin_ticks == 200);
    CHECK(named.book.seen().end_ticks == 400);
}

TEST_CASE("iterations: what came before the instant does not count") {
    Rig rig({1, 1, "step"}, 250);
    for (std::uint64_t i = 1; i <= 4; ++i) rig.boundary(100 * i, i);
    CHECK(rig.book.seen().begin_ticks == 300);
    Rig ranges({1, 1, "step"}, 250);
    ranges.range(200, 260);
    CHECK_FALSE(ranges.book.seen().shown);
}

TEST_CASE("iterations: of a range's name they go from begin to begin, the last to its own end") {
    Rig rig({3, 1, "step"});
    rig.range(500, 540);
    rig.range(300, 310);
    rig.range(305, 307, 2);
    CHECK(rig.book.seen().count == 2);
    rig.range(400, 430);
    rig.range(600, 610);
    const IterationsSeen seen = rig.book.seen();
    CHECK(seen.count == 3);
    CHECK(seen.first == 1);
    CHECK(seen.begin_ticks == 300);
    CHECK(seen.end_ticks == 540);
    Rig second({1, 2, "step"});
    second.range(300, 310);
    second.range(400, 400);
    CHECK(second.book.seen().begin_ticks == 400);
    CHECK(second.book.seen().end_ticks == 401);
}

TEST_CASE("iterations: a range that ends on another lane is one too, also when its end is first") {
    Rig rig({2, 1, "step"});
    rig.take(RecordKind::kAsyncEnd, 0, 150, 7);
    rig.take(RecordKind::kAsyncBegin, 1, 100, 7);
    rig.take(RecordKind::kAsyncBegin, 2, 110, 9);
    rig.take(RecordKind::kAsyncBegin, 1, 200, 8);
    CHECK(rig.book.seen().count == 1);
    rig.take(RecordKind::kAsyncEnd, 0, 260, 8);
    CHECK(rig.book.seen().count == 2);
    CHECK(rig.book.seen().end_ticks == 260);
}

TEST_CASE("iterations: a range's end that is first is remembered through a flood of others'") {
    Rig rig({1, 1, "step"});
    rig.take(RecordKind::kAsyncEnd, 0, 150, 7);
    for (std::uint64_t key = 100; key < 40'000; ++key) rig.take(RecordKind::kAsyncEnd, 0, 151, key);
    rig.take(RecordKind::kAsyncBegin, 1, 100, 7);
    CHECK(rig.book.seen().count == 1);
}

TEST_CASE("iterations: where a name is a boundary's and a range's, whichever has them whole") {
    Rig rig({1, 1, "step"});
    rig.range(100, 150);
    rig.boundary(151, 1);
    // As torch's optimizers write it; the leader has heard that it is done by the range alone.
    CHECK(rig.book.seen().count == 1);
    CHECK(rig.book.seen().end_ticks == 150);
    rig.range(200, 250);
    rig.boundary(251, 2);
    CHECK(rig.book.seen().begin_ticks == 151);
    CHECK(rig.book.seen().end_ticks == 251);
}
