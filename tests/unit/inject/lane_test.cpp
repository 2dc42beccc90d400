// The lanes: full, wrapping, released and reused, refused, made real a part at a time, many at once.
#include <doctest/doctest.h>
#include <pthread.h>
#include <sys/stat.h>

#include <thread>
#include <vector>

#include "hooks.hpp"

using namespace ringside;
using inject::HookScope;
using inject::ThreadLane;
using schema::ContextState;
using schema::LaneState;
using schema::RecordKind;
using schema::SourceId;
using test::in_hook;
using test::mark;
using test::ReadRecord;
using test::Sandbox;
using test::SegmentView;
using test::serving;
using test::state_of;

TEST_CASE("lane: a full one drops and counts, and says the context again before the next record") {
    Sandbox box;
    box.control().first_lane_kib.store(4);
    box.control().most_lane_kib.store(4);
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        in_hook([](ThreadLane& lane) { lane.set_context(serving(5)); });
        const SegmentView view(box.segments()[0]);
        const std::uint32_t capacity = view.lane(0).capacity_cells.load();
        EXPECT(capacity == 128);
        for (std::uint32_t i = 0; i < capacity + 8; ++i) mark(i);
        EXPECT(view.lane(0).dropped.load() == 10);
        EXPECT(view.lane(0).first_drop_ticks.load() <= view.lane(0).last_drop_ticks.load());
        EXPECT(view.lane(0).context_state.load() ==
               static_cast<std::uint32_t>(ContextState::kUnknown));
        EXPECT(view.drain(0).size() == capacity - 1);
        mark(1000);
        EXPECT(view.lane(0).context_state.load() ==
               static_cast<std::uint32_t>(ContextState::kServing));
        const auto after = view.drain(0);
        EXPECT(after.size() == 2);
        EXPECT(after[0].header.kind == RecordKind::kContext);
        EXPECT(schema::record_detail(after[0].header.flags) ==
               (schema::kContextOn | schema::kContextAgain));
        EXPECT(after[0].words[2] == 5);
        EXPECT(after[1].words[2] == 1000);
        EXPECT(view.lane(0).records.load() == capacity - 1 + 2);
    });
}

TEST_CASE("lane: after a drop without any context 'none' is said again too") {
    Sandbox box;
    box.control().first_lane_kib.store(4);
    box.control().most_lane_kib.store(4);
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        for (int i = 0; i < 129; ++i) mark(0);
        const SegmentView view(box.segments()[0]);
        EXPECT(view.lane(0).dropped.load() == 1);
        view.drain(0);
        mark(1);
        const auto after = view.drain(0);
        EXPECT(after.size() == 2);
        EXPECT(schema::record_detail(after[0].header.flags) == schema::kContextAgain);
        EXPECT(after[0].words[2] == 0);
    });
}

TEST_CASE("lane: records of two and three cells go round the ring's end whole") {
    Sandbox box;
    box.control().first_lane_kib.store(4);
    box.control().most_lane_kib.store(4);
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        std::uint64_t seen = 0;
        for (std::uint64_t i = 0; i < 1000; ++i) {
            in_hook([&](ThreadLane& lane) {
                inject::RpcBegin begin;
                begin.key = i + 1;
                begin.function = lane.intern_cached("f");
                lane.rpc_begin(begin);
                lane.begin_range(SourceId::kTorch, 0, begin.function, 1, 0);
                lane.end_operator(1, {static_cast<std::int64_t>(i), 0, 0, 0});
            });
            const SegmentView view(box.segments()[0]);
            for (const ReadRecord& record : view.drain(0)) {
                if (record.header.kind == RecordKind::kRpcBegin) EXPECT(record.words[2] == i + 1);
                if (record.header.kind == RecordKind::kOperator) EXPECT(record.words[3] == i);
                EXPECT(record.name == "f");
                ++seen;
            }
        }
        EXPECT(seen == 2000);
    });
}

TEST_CASE(
    "lane: a thread's end releases it, and the next thread gets it once the agent has freed it") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        std::thread([] {
            mark(1);
            in_hook([](ThreadLane& lane) { lane.set_context(serving(8)); });
        }).join();
        const SegmentView view(box.segments()[0]);
        EXPECT(state_of(view, 0) == LaneState::kReleased);
        std::thread([] { mark(2); }).join();
        EXPECT(view.header().lanes_in_use.load() == 2);
        // As the agent does: drain, then free.
        EXPECT(view.drain(0).size() == 2);
        const std::uint64_t position = view.lane(0).committed.load();
        view.lane(0).state.store(schema::pack_lane_state(LaneState::kFree, 1),
                                 std::memory_order_release);
        std::thread([] { mark(3); }).join();
        EXPECT(view.header().lanes_in_use.load() == 2);
        EXPECT(schema::lane_generation(view.lane(0).state.load()) == 2);
        const auto records = view.drain(0);
        EXPECT(records.size() == 2);
        EXPECT(records[0].position >= position);
        // The last thread ended while it served.
        EXPECT(records[0].header.kind == RecordKind::kContext);
        EXPECT(records[0].words[2] == 0);
        EXPECT(records[1].words[2] == 3);
    });
}

TEST_CASE("lane: hooks in a later destructor of an ending thread get a lane that is released too") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        pthread_key_t key{};
        EXPECT(pthread_key_create(&key, [](void*) { mark(2); }) == 0);
        std::thread([&] {
            mark(1);
            pthread_setspecific(key, &key);
        }).join();
        const SegmentView view(box.segments()[0]);
        EXPECT(view.header().lanes_in_use.load() == 2);
        EXPECT(state_of(view, 0) == LaneState::kReleased);
        EXPECT(state_of(view, 1) == LaneState::kReleased);
    });
}

TEST_CASE("lane: beyond the process's budget threads are refused and their records counted") {
    Sandbox box;
    box.control().first_lane_kib.store(4);
    box.control().most_lane_kib.store(4);
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        mark(1);
        const SegmentView view(box.segments()[0]);
        // Of 4 KiB each, with a page before.
        box.control().process_budget_bytes.store(view.header().real_bytes.load() + 8192 + 100);
        std::thread second([] {
            mark(1);
            std::thread([] {
                for (int i = 0; i < 5; ++i) {
                    const HookScope begins(inject::Writes::kNothing);
                    EXPECT(!begins);
                    const HookScope hook;
                    EXPECT(!hook);
                }
            }).join();
        });
        second.join();
        EXPECT(view.header().lanes_in_use.load() == 2);
        EXPECT(view.loss(schema::Loss::kLaneRefused) == 5);
        EXPECT(view.loss(schema::Loss::kRefusedByProcess) == 1);
    });
}

TEST_CASE("lane: a thread that was refused one gets it once there is memory again") {
    Sandbox box;
    box.control().process_budget_bytes.store(1);
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        const auto try_to_mark = [] {
            const HookScope hook;
            if (hook) hook.lane().mark(SourceId::kApi, 3, hook.lane().intern_cached("mark"), 2, 0);
        };
        try_to_mark();
        const SegmentView view(box.segments()[0]);
        EXPECT(view.loss(schema::Loss::kLaneRefused) == 1);
        box.control().process_budget_bytes.store(64 << 20);
        for (int i = 0; i < 100000 && view.header().lanes_in_use.load() == 0; ++i) try_to_mark();
        EXPECT(view.header().lanes_in_use.load() == 1);
        EXPECT(view.drain(0).size() == 1);
        EXPECT(view.loss(schema::Loss::kLaneRefused) == 1024);
    });
}

TEST_CASE("lanes: many threads at once each get their own, and every record is there") {
    Sandbox box;
    box.control().first_lane_kib.store(64);
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        constexpr std::uint64_t kThreads = 32;
        constexpr std::uint64_t kRecords = 1000;
        std::vector<std::thread> threads;
        for (std::uint64_t i = 0; i < kThreads; ++i) {
            threads.emplace_back([i] {
                for (std::uint64_t n = 0; n < kRecords; ++n) mark(i * kRecords + n);
            });
        }
        for (std::thread& thread : threads) thread.join();
        const SegmentView view(box.segments()[0]);
        EXPECT(view.header().lanes_in_use.load() == kThreads);
        EXPECT(view.header().names_used.load() >= 1);
        std::vector<bool> seen(kThreads * kRecords);
        for (std::uint32_t lane = 0; lane < kThreads; ++lane) {
            std::uint64_t before = 0;
            for (const ReadRecord& record : view.records(lane)) {
                EXPECT(record.name == "mark");
                EXPECT(!seen[record.words[2]]);
                EXPECT(before == 0 || record.words[2] == before + 1);
                seen[record.words[2]] = true;
                before = record.words[2];
            }
        }
        for (const bool one : seen) EXPECT(one);
    });
}
