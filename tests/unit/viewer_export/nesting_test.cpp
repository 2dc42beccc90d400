// Self times and parents on one lane.
#include <doctest/doctest.h>

#include <vector>

#include "viewer_export/model/nesting.hpp"
#include "viewer_export/out/trace_tracks.hpp"

using namespace ringside::viewer_export;
using namespace ringside::viewer_export::model;

namespace {

Range range(std::int64_t begin, std::int64_t end, Index name = 0) {
    Range result{};
    result.begin_ns = begin;
    result.end_ns = end;
    result.name = name;
    result.request = kNone;
    return result;
}

}  // namespace

TEST_CASE("nesting: no ranges, no parents") {
    CHECK(nest({}).parent.empty());
}

TEST_CASE("nesting: self time is the duration less the direct children's") {
    const std::vector<Range> ranges = {range(0, 100), range(10, 50, 1), range(20, 30, 2),
                                       range(60, 70, 3)};
    const Nesting nesting = nest(ranges);
    CHECK(nesting.parent == std::vector<Index>{kNone, 0, 1, 0});
    CHECK(nesting.self_ns == std::vector<std::int64_t>{50, 30, 10, 10});
}

TEST_CASE("nesting: of two ranges with one begin the longer one is the parent") {
    const std::vector<Range> ranges = {range(5, 100), range(5, 50, 1), range(5, 50, 2)};
    const Nesting nesting = nest(ranges);
    CHECK(nesting.parent == std::vector<Index>{kNone, 0, 1});
    CHECK(nesting.self_ns == std::vector<std::int64_t>{50, 0, 45});
}

TEST_CASE("nesting: ranges that touch or overlap in part are no relatives") {
    const std::vector<Range> ranges = {range(0, 10), range(10, 20, 1), range(15, 30, 2)};
    const Nesting nesting = nest(ranges);
    CHECK(nesting.parent == std::vector<Index>{kNone, kNone, kNone});
    CHECK(nesting.self_ns == std::vector<std::int64_t>{10, 10, 15});
}

TEST_CASE("nesting: a range of no length takes nothing from its parent and is nobody's parent") {
    const std::vector<Range> ranges = {range(0, 10), range(5, 5, 1), range(5, 8, 2)};
    const Nesting nesting = nest(ranges);
    CHECK(nesting.parent == std::vector<Index>{kNone, 0, 0});
    CHECK(nesting.self_ns == std::vector<std::int64_t>{7, 0, 3});
}

TEST_CASE("nesting: what is left out by name gives its children to its parent") {
    const std::vector<Range> ranges = {range(0, 100), range(10, 50, 1), range(20, 30, 2)};
    const std::vector<bool> leave_out = {false, true, false};
    const Nesting nesting = nest(ranges, &leave_out);
    CHECK(nesting.parent == std::vector<Index>{kNone, kNone, 0});
    CHECK(nesting.self_ns == std::vector<std::int64_t>{90, 0, 10});
}

TEST_CASE("nesting: open ranges hold nothing and are held by nothing") {
    std::vector<Range> ranges = {range(0, 100), range(10, 50, 1)};
    ranges[0].end = End::kOpen;
    const Nesting nesting = nest(ranges);
    CHECK(nesting.left_out[0]);
    CHECK(nesting.parent[1] == kNone);
    CHECK(nesting.self_ns == std::vector<std::int64_t>{0, 40});
}

TEST_CASE(
    "nesting: an only child of its own name is folded into its parent, a chain of them into the "
    "outermost") {
    const std::vector<Range> ranges = {range(0, 100), range(10, 90), range(20, 80),
                                       range(30, 40, 1)};
    const Nesting nesting = nest(ranges);
    CHECK(nesting.folded == std::vector<bool>{false, true, true, false});
    CHECK(nesting.self_ns[0] == 90);
    const std::vector<Range> siblings = {range(0, 100), range(10, 20), range(30, 40)};
    CHECK(nest(siblings).folded == std::vector<bool>{false, false, false});
}

static std::vector<std::uint32_t> rows_of(const std::vector<Range>& ranges) {
    trace::Nesting nesting;
    std::vector<std::uint32_t> rows;
    for (const Range& each : ranges) rows.push_back(nesting.place(each.begin_ns, each.end_ns));
    return rows;
}

TEST_CASE("rows: ranges that nest need one row") {
    const std::vector<Range> ranges = {range(0, 100), range(10, 50), range(50, 100),
                                       range(100, 110)};
    CHECK(rows_of(ranges) == std::vector<std::uint32_t>{0, 0, 0, 0});
}

TEST_CASE("rows: a partial overlap goes to the first row where it nests") {
    const std::vector<Range> ranges = {range(0, 100), range(50, 150), range(60, 90), range(70, 160),
                                       range(120, 200)};
    CHECK(rows_of(ranges) == std::vector<std::uint32_t>{0, 1, 0, 2, 0});
}

TEST_CASE(
    "rows: intervals in flight at once get rows of their own, freed rows are used again, lowest "
    "first") {
    trace::RowPacker packer;
    CHECK(packer.place(0, 10) == 0);
    CHECK(packer.place(5, 20) == 1);
    CHECK(packer.place(6, 7) == 2);
    CHECK(packer.place(10, 12) == 2);  // the first row's interval ends at 10: they would touch
    CHECK(packer.place(11, 30) == 0);
    CHECK(packer.place(25, 26) == 1);
    CHECK(packer.rows() == 3);
}
