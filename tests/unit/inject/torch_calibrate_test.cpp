// RecordFunction's fields from two samples: the layouts of 1.13, 2.5 and 2.8 as they were measured, and samples that mislead.
#include <doctest/doctest.h>

#include <cstring>
#include <initializer_list>

#include "inject/sources/torch/calibrate.hpp"

namespace {

using namespace ringside::inject::torch;

struct Layout {
    std::size_t thread, scope, sequence, forward_thread;
};

void put(CalibrationSample& sample, int index, std::size_t at, std::uint64_t value,
         std::size_t bytes) {
    std::memcpy(sample.bytes[index] + at, &value, bytes);
}

CalibrationSample sample_of(const Layout& layout) {
    CalibrationSample sample{};
    sample.scope[0] = 7, sample.scope[1] = 6;
    sample.sequence[0] = 0x05ca1ab1e0ddba11, sample.sequence[1] = 0x7e57c0de12345678;
    sample.thread_id = 3;
    for (int i = 0; i < 2; ++i) {
        put(sample, i, 0, 0x7f1234567000, 8);
        put(sample, i, layout.thread, sample.thread_id, 8);
        put(sample, i, layout.scope, sample.scope[i], 1);
        put(sample, i, layout.sequence, static_cast<std::uint64_t>(sample.sequence[i]), 8);
        put(sample, i, layout.forward_thread + 8, 41 + static_cast<unsigned>(i), 8);  // the handle
    }
    return sample;
}

TEST_CASE("calibration: the fields of each known layout are found") {
    for (const Layout& layout :
         {Layout{88, 96, 200, 248}, Layout{88, 96, 200, 304}, Layout{88, 96, 176, 280}}) {
        const RangeOffsets found = find_offsets(sample_of(layout));
        CHECK(found.thread == layout.thread);
        CHECK(found.scope == layout.scope);
        CHECK(found.sequence == layout.sequence);
        CHECK(found.forward_thread == layout.forward_thread);
    }
}

TEST_CASE("calibration: a field that is found twice is off, the others stay") {
    CalibrationSample sample = sample_of({88, 96, 200, 248});
    for (int i = 0; i < 2; ++i) put(sample, i, 320, 100 + static_cast<unsigned>(i), 8);
    RangeOffsets found = find_offsets(sample);
    CHECK(found.forward_thread == 0);
    CHECK(found.sequence == 200);

    sample = sample_of({88, 96, 200, 248});
    for (int i = 0; i < 2; ++i) put(sample, i, 112, sample.scope[i], 1);
    found = find_offsets(sample);
    CHECK(found.scope == 0);
    CHECK(found.thread == 0);
}

TEST_CASE("calibration: without the sequence number nothing is trusted") {
    CalibrationSample sample = sample_of({88, 96, 200, 248});
    for (int i = 0; i < 2; ++i)
        put(sample, i, 208, static_cast<std::uint64_t>(sample.sequence[i]), 8);
    const RangeOffsets found = find_offsets(sample);
    CHECK(found.sequence == 0);
    CHECK(found.scope == 0);
    CHECK(found.forward_thread == 0);
}

TEST_CASE("calibration: another thread's number before the scope is not taken for ours") {
    CalibrationSample sample = sample_of({88, 96, 200, 248});
    put(sample, 1, 88, 4, 8);
    CHECK(find_offsets(sample).thread == 0);
    CHECK(find_offsets(sample).scope == 96);
}

TEST_CASE("calibration: missing functions and foreign observers are told apart") {
    CalibrationApi api{};
    Calibrated found;
    CHECK(calibrate(api, &found) == CalibrationResult::kUnsupported);
    api.add_callback = [](RecordFunctionCallback) -> std::uint64_t { return 1; };
    api.remove_callback = [](std::uint64_t) {};
    api.construct = [](void*, std::uint8_t) {};
    api.destroy = [](void*) {};
    api.current_thread_id = []() -> std::uint64_t { return 1; };
    api.before_text = [](void*, const char*, std::int64_t) {};
    api.has_callbacks = [] { return true; };
    CHECK(calibrate(api, &found) == CalibrationResult::kObserved);
    api.has_callbacks = [] { return false; };
    CHECK(calibrate(api, &found) == CalibrationResult::kUnsupported);  // the callback never came
    CHECK(found.offsets.sequence == 0);
}

}  // namespace
