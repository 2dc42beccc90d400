// Which request a lane serves at an event's begin.
#include <doctest/doctest.h>

#include "viewer_export/model/context.hpp"
#include "viewer_export/model/event.hpp"

using namespace ringside::viewer_export::model;
using ringside::schema::ContextState;

namespace {

constexpr Context kOff{};
constexpr Context kSeven{ContextState::kServing, 7};
constexpr Context kUnknown{ContextState::kUnknown, 0};

}  // namespace

TEST_CASE("context: without a switch the initial one holds throughout") {
    ContextTrack track;
    CHECK(track.at(5, 1) == kOff);
    track.set_initial(kSeven);
    CHECK(track.at(0, 0) == kSeven);
    CHECK(track.at(~0ull, kNoPosition) == kSeven);
}

TEST_CASE("context: a switch holds from its own time on") {
    ContextTrack track;
    track.switch_to(100, 10, kSeven);
    track.switch_to(200, 20, kOff);
    CHECK(track.at(99, 30) == kOff);
    CHECK(track.at(101, 30) == kSeven);
    CHECK(track.at(201, 30) == kOff);
}

TEST_CASE("context: at the switch's own tick the record's side of it decides") {
    ContextTrack track;
    track.switch_to(100, 10, kSeven);
    CHECK(track.at(100, 9) == kOff);
    CHECK(track.at(100, 12) == kSeven);
}

TEST_CASE("context: a clock that goes backwards in a damaged dump does not upset the order") {
    ContextTrack track;
    track.switch_to(100, 10, kSeven);
    track.switch_to(50, 20, kUnknown);
    CHECK(track.at(100, 15) == kSeven);
    CHECK(track.at(101, 30) == kUnknown);
}

TEST_CASE(
    "context: a walk over a lane gives what single questions give, ties in any order of "
    "positions") {
    ContextTrack track;
    for (std::uint64_t i = 0; i < 50; ++i)
        track.switch_to(i / 3 * 10, 2 * i, {ContextState::kServing, i});
    ContextTrack::Cursor cursor(track);
    for (std::uint64_t ticks = 0; ticks < 200; ++ticks) {
        for (const std::uint64_t position : {kNoPosition, std::uint64_t{41}, std::uint64_t{7}}) {
            CHECK(cursor.at(ticks, position) == track.at(ticks, position));
        }
    }
}
