// Ranges of one thread that another one ends: as many at once as a thread may have open, and all of them are written.
#include <doctest/doctest.h>

#include <thread>

#include "hooks.hpp"
#include "inject/sources/torch/ended_elsewhere.hpp"

using namespace ringside;
using inject::ThreadLane;
using schema::RecordKind;
using test::in_hook;
using test::Sandbox;
using test::SegmentView;

namespace {

constexpr std::uint32_t kRounds = 20;
constexpr std::uint64_t kFirstRange = 0x7f0000001000, kStride = 0x1c0;

std::uint64_t range_at(std::uint64_t i) {
    return kFirstRange + i * kStride;
}

}  // namespace

TEST_CASE("ended elsewhere: a whole stack of them at once, again and again") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        for (std::uint32_t round = 0; round < kRounds; ++round) {
            in_hook([&](ThreadLane& lane) {
                for (std::uint64_t i = 0; i < schema::kOpenStackDepth; ++i)
                    lane.begin_range(schema::SourceId::kTorch, 0, lane.intern("range", 5),
                                     range_at(round + i), 0);
            });
            std::thread([&] {
                for (std::uint64_t i = 0; i < schema::kOpenStackDepth; ++i)
                    inject::torch::leave_word(range_at(round + i));
            }).join();
            in_hook([](ThreadLane& lane) {
                inject::torch::end_what_ended_elsewhere(lane);
                EXPECT(lane.open_ranges() == 0);
            });
        }
        const SegmentView view(box.segments()[0]);
        EXPECT(view.records(0).size() == kRounds * schema::kOpenStackDepth);
        EXPECT(view.loss(schema::Loss::kTableFull) == 0);
    });
}

TEST_CASE("ended elsewhere: a word older than the range at the same address ends nothing") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        inject::torch::leave_word(range_at(0));
        in_hook([](ThreadLane& lane) {
            lane.begin_range(schema::SourceId::kTorch, 0, lane.intern("range", 5), range_at(0), 0);
            inject::torch::take_words(lane);
            EXPECT(lane.open_ranges() == 1);
        });
    });
}

TEST_CASE("ended elsewhere: words that nobody takes give way, and are counted") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        in_hook([](ThreadLane&) {});
        constexpr std::uint64_t kMany = 1000;
        for (std::uint64_t i = 0; i < kMany; ++i) inject::torch::leave_word(range_at(i));
        const SegmentView view(box.segments()[0]);
        const std::uint64_t given_up = view.loss(schema::Loss::kTableFull);
        EXPECT(given_up > 0);
        EXPECT(given_up < kMany);
        inject::torch::forget_words();
        inject::torch::leave_word(range_at(0));
        EXPECT(view.loss(schema::Loss::kTableFull) == given_up);
    });
}
