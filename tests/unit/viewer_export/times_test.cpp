// Ticks to nanoseconds and their sums, for calibrations and corrections as they are and as a hostile dump has them.
#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>
#include <limits>

#include "viewer_export/model/bounded_sum.hpp"
#include "viewer_export/model/job.hpp"

namespace {

using ringside::viewer_export::model::add_to;
using ringside::viewer_export::model::Calibration;
using ringside::viewer_export::model::ClockCorrection;

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kGreatest = std::numeric_limits<std::int64_t>::max();
constexpr double kEndless = std::numeric_limits<double>::infinity();
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

TEST_CASE("times: the reference, and what is before and after it, to the nanosecond") {
    const Calibration calibration{5'000'000, 1'700'000'000'000'000'123, 2e9, 0, 0};
    CHECK(calibration.node_ns(5'000'000) == 1'700'000'000'000'000'123);
    CHECK(calibration.node_ns(5'000'010) == 1'700'000'000'000'000'128);
    CHECK(calibration.node_ns(4'999'000) == 1'699'999'999'999'999'623);
    const ClockCorrection clock{1'700'000'000'000'000'000, -250, 1000, 0};
    CHECK(clock.leader_ns(1'700'000'000'000'000'000) == 1'699'999'999'999'999'750);
    CHECK(clock.leader_ns(1'700'000'001'000'000'000) == 1'700'000'000'999'999'750 + 1000);
}

TEST_CASE("times: the difference of any two fits, whatever a dump says") {
    for (const std::int64_t reference : {kLeast, std::int64_t{0}, kGreatest}) {
        for (const double rate : {1e-300, 1e-9, 1e9, kEndless}) {
            for (const std::uint64_t ticks : {0ull, 1ull << 63, ~0ull}) {
                const std::int64_t ns = Calibration{1, reference, rate, 0, 0}.node_ns(ticks);
                CHECK(ns >= kLeast / 2);
                CHECK(ns <= kGreatest / 2);
            }
        }
        for (const double drift : {-kEndless, kNoNumber, 1e30}) {
            const std::int64_t ns = ClockCorrection{reference, reference, drift, 0}.leader_ns(7);
            CHECK(ns >= kLeast / 2);
            CHECK(ns <= kGreatest / 2);
        }
    }
}

TEST_CASE("times: sums stop at the ends") {
    std::int64_t sum = kGreatest - 5;
    add_to(sum, 4);
    CHECK(sum == kGreatest - 1);
    add_to(sum, 4);
    CHECK(sum == kGreatest);
    sum = kLeast + 3;
    add_to(sum, -8);
    CHECK(sum == kLeast);
}

}  // namespace
