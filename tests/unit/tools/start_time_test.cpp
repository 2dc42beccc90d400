// Instants, right and wrong.
#include "tools/ringside/start_time.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <time.h>

#include <string>

#include "tools/ringside/progress.hpp"

namespace {

using ringside::schema::ErrorCode;
using ringside::tools::parse_start_time;

constexpr std::int64_t kSecond = 1'000'000'000;
/// 2026-03-01T11:30:00Z.
constexpr std::int64_t kNow = 1'772'364'600 * kSecond;

/// Local time is two hours east of UTC.
struct Zone {
    Zone() {
        ::setenv("TZ", "EET-2", 1);
        ::tzset();
    }
    ~Zone() {
        ::unsetenv("TZ");
        ::tzset();
    }
};

}  // namespace

TEST_CASE("start time: each spelling of one instant") {
    const Zone zone;
    const std::int64_t noon = kNow + 1800 * kSecond;
    for (const char* text :
         {"2026-03-01T12:00:00Z", "2026-03-01T14:00:00", "2026-03-01 14:00:00", "14:00:00",
          "2026-03-01T07:00:00-05:00", "2026-03-01T07:00:00-0500", "1772366400000"}) {
        CAPTURE(text);
        const auto parsed = parse_start_time(text, kNow);
        REQUIRE_MESSAGE(parsed, (parsed ? "" : parsed.error().message));
        CHECK(*parsed == noon);
    }
    CHECK(*parse_start_time("14:00:00.25", kNow) == noon + kSecond / 4);
    CHECK(*parse_start_time("2026-03-01T12:00:00.500Z", kNow) == noon + kSecond / 2);
}

TEST_CASE("start time: what is none, past, or farther than an hour says what to do") {
    const Zone zone;
    for (const char* text :
         {"", "soon", "14:00", "14:00:00x", "2026-03-01T12:00:00+2", "2026-13-01T12:00:00Z",
          "999999999999999", "99999999999999999999", "-5"}) {
        CAPTURE(text);
        const auto parsed = parse_start_time(text, kNow);
        REQUIRE_FALSE(parsed);
        CHECK(parsed.error().code == ErrorCode::kUsage);
        CHECK(parsed.error().message.find("is no time") != std::string::npos);
    }
    CHECK(parse_start_time("13:29:59", kNow).error().message.find("past by 1000 ms") !=
          std::string::npos);
    CHECK_FALSE(parse_start_time("13:30:00", kNow));
    CHECK(parse_start_time("14:30:00", kNow));
    CHECK(parse_start_time("14:30:01", kNow).error().message.find("more than an hour") !=
          std::string::npos);
}

TEST_CASE("progress: a bar is as full as the work is done") {
    using ringside::tools::bar_text;
    CHECK(bar_text(0, 0).empty());
    CHECK(bar_text(0, 10) == "[------------------------]   0 %");
    CHECK(bar_text(5, 10) == "[############------------]  50 %");
    CHECK(bar_text(10, 10) == "[########################] 100 %");
    CHECK(bar_text(11, 10) == bar_text(10, 10));
}
