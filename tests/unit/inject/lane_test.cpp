#include <doctest/doctest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "inject/core/lanes.hpp"
#include "inject/core/process.hpp"
#include "sandbox.hpp"

using namespace ringside;
using inject::Context;
using inject::HookScope;
using inject::ThreadLane;
using schema::ContextState;
using schema::LaneState;
using schema::RecordKind;
using schema::SourceId;
using test::ReadRecord;
using test::Sandbox;
using test::SegmentView;

namespace {

/// Runs `body` as a hook would.
template <class Body>
void in_hook(Body body) {
    HookScope hook;
    EXPECT(static_cast<bool>(hook));
    body(hook.lane());
}

void mark(std::uint64_t value) {
    in_hook([&](ThreadLane& lane) {
        lane.mark(SourceId::kApi, 3, lane.intern_cached("mark"), value, 0);
    });
}

Context serving(std::uint64_t key) {
    return {key, {11, 22}, {33}};
}

LaneState state_of(const SegmentView& view, std::uint32_t lane) {
    return schema::lane_state(view.lane(lane).state.load());
}

}  // namespace

TEST_CASE("hook: off costs nothing: no lane, no page") {
    Sandbox box;
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        HookScope hook;
        EXPECT(!hook);
    });
    const SegmentView view(box.segment_of(pid));
    CHECK(view.header().lanes_in_use.load() == 0);
    CHECK(view.header().names_used.load() == 0);
}

TEST_CASE("lane: a range is one cell with begin, end, name and argument") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        in_hook([](ThreadLane& lane) {
            lane.begin_range(SourceId::kTorch, 7, lane.intern("outer", 5), 100, 5);
        });
        in_hook([](ThreadLane& lane) {
            lane.begin_range(SourceId::kTorch, 0, lane.intern("inner", 5), 200, 6);
        });
        in_hook([](ThreadLane& lane) { EXPECT(lane.end_range(200)); });
        in_hook([](ThreadLane& lane) { EXPECT(lane.end_range(100)); });
    });
    const SegmentView view(box.segment_of(pid));
    const auto records = view.records(0);
    REQUIRE(records.size() == 2);
    CHECK(records[0].name == "inner");
    CHECK(records[1].name == "outer");
    CHECK(records[1].header.kind == RecordKind::kRange);
    CHECK(records[1].header.flags == schema::record_flags(SourceId::kTorch, 7));
    CHECK(records[1].words[3] == 5);
    CHECK(records[1].words[1] <= records[0].words[1]);
    CHECK(records[0].words[1] <= records[0].words[2]);
    CHECK(records[0].words[2] <= records[1].words[2]);
    CHECK(view.lane(0).records.load() == 2);
    CHECK(view.lane(0).open_depth.load() == 0);
    CHECK(view.lane(0).tid.load() == static_cast<std::uint32_t>(pid));
}

TEST_CASE("lane: ranges that end out of order keep their own begin and argument") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        in_hook([](ThreadLane& lane) {
            for (std::uint64_t key = 1; key <= 3; ++key)
                lane.begin_range(SourceId::kTorch, 0, lane.intern("r", 1), key, key * 10);
            EXPECT(lane.end_range(2));
            EXPECT(!lane.end_range(2));
            EXPECT(lane.end_range(3));
            EXPECT(lane.end_range(1));
        });
    });
    const SegmentView view(box.segment_of(pid));
    const auto records = view.records(0);
    REQUIRE(records.size() == 3);
    CHECK(records[0].words[3] == 20);
    CHECK(records[1].words[3] == 30);
    CHECK(records[2].words[3] == 10);
    CHECK(view.lane(0).open_depth.load() == 0);
}

TEST_CASE("lane: an operator carries sequence, threads and scope") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        in_hook([](ThreadLane& lane) {
            lane.begin_range(SourceId::kTorch, 1, lane.intern("AddBackward0", 12), 9, 4);
            EXPECT(lane.end_operator(9, -1, 3, 2, 1));
        });
    });
    const auto records = SegmentView(box.segment_of(pid)).records(0);
    REQUIRE(records.size() == 1);
    CHECK(records[0].header.kind == RecordKind::kOperator);
    CHECK(records[0].header.cells == 2);
    CHECK(records[0].name == "AddBackward0");
    CHECK(records[0].words[3] == ~0ull);
    CHECK(records[0].words[4] == (3 | 2ull << 32));
    CHECK(records[0].words[5] == 1);
}

TEST_CASE("lane: both halves of an RPC, an async pair, an iteration and a counter read back") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        in_hook([](ThreadLane& lane) {
            inject::RpcBegin begin;
            begin.source = SourceId::kTorch;
            begin.side = schema::RpcSide::kServer;
            begin.mode = schema::RpcMode::kFetch;
            begin.key = inject::next_key();
            begin.parent_key = 77;
            begin.id.span = {0xabc};
            begin.bytes = 1000;
            begin.function = lane.intern("f", 1);
            begin.module = lane.intern("m", 1);
            begin.self = lane.intern("worker1", 7);
            begin.peer = lane.intern("worker0", 7);
            begin.self_id = 1;
            begin.wire_type = 0x107;
            begin.wire_id = 42;
            lane.rpc_begin(begin);
            lane.rpc_end(SourceId::kTorch, begin.key, schema::RpcStatus::kTimeout, 12);
            const std::uint64_t key = inject::next_key();
            lane.async_begin(SourceId::kTorch, 0, lane.intern("gloo", 4), key, 1);
            lane.async_end(SourceId::kTorch, 0, lane.intern("gloo", 4), key, 2);
            lane.iteration(SourceId::kTorch, lane.intern("step", 4), 5, 6);
            lane.counter(SourceId::kApi, 0, lane.intern("bytes", 5), 7, 8);
        });
    });
    const SegmentView view(box.segment_of(pid));
    const auto records = view.records(0);
    REQUIRE(records.size() == 6);
    CHECK(records[0].header.kind == RecordKind::kRpcBegin);
    CHECK(records[0].name == "f");
    CHECK(records[0].words[2] == 1);
    CHECK(records[0].words[3] == 1000);
    CHECK(records[0].words[6] == 0xabc);
    CHECK(records[0].words[7] == 77);
    CHECK(view.name({static_cast<std::uint32_t>(records[0].words[8])}) == "worker0");
    CHECK(view.name({static_cast<std::uint32_t>(records[0].words[8] >> 32)}) == "worker1");
    CHECK(view.name({static_cast<std::uint32_t>(records[0].words[9])}) == "m");
    CHECK((records[0].words[9] >> 32) == 0x107);
    CHECK(records[0].words[10] == 42);
    CHECK(records[0].words[11] == (5 | 1u << 8 | 1u << 16 | 0xffffull << 32));
    CHECK(records[1].words[3] == schema::RpcEndRecord::pack(schema::RpcStatus::kTimeout, 12));
    CHECK(records[2].words[2] == records[3].words[2]);
    CHECK(records[4].header.kind == RecordKind::kIteration);
    CHECK(records[4].words[2] == 5);
    CHECK(records[5].header.kind == RecordKind::kCounter);
}

TEST_CASE("context: it is recorded when it changes and stands in the lane's header") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        in_hook([](ThreadLane& lane) {
            lane.set_context({});
            lane.set_context(serving(5));
            lane.set_context(serving(5));
            EXPECT(lane.context().key == 5);
        });
    });
    const SegmentView view(box.segment_of(pid));
    const auto records = view.records(0);
    REQUIRE(records.size() == 1);
    CHECK(schema::record_detail(records[0].header.flags) == schema::kContextOn);
    CHECK(records[0].words[2] == 5);
    CHECK(records[0].words[4] == 11);
    CHECK(records[0].words[6] == 33);
    CHECK(view.lane(0).context_key.load() == 5);
    CHECK(view.lane(0).context_state.load() == static_cast<std::uint32_t>(ContextState::kServing));
}

TEST_CASE("lane: a full one drops and counts, and says the context again before the next record") {
    Sandbox box;
    box.control().first_lane_kib.store(4);
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
                lane.end_operator(1, static_cast<std::int64_t>(i), 0, 0, 0);
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

TEST_CASE("open stack: what a killed process had open stands in its lane") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run_killed(SIGKILL, [&] {
        EXPECT(box.load());
        in_hook([](ThreadLane& lane) {
            lane.begin_range(SourceId::kTorch, 7, lane.intern("outer", 5), 1, 2);
            lane.begin_range(SourceId::kTorch, 0, lane.intern("inner", 5), 3, 4);
            lane.begin_range(SourceId::kTorch, 0, lane.intern("done", 4), 5, 6);
            lane.end_range(5);
        });
        raise(SIGKILL);
    });
    const SegmentView view(box.segment_of(pid));
    CHECK_FALSE(view.locked());
    CHECK(view.records(0).size() == 1);
    REQUIRE(view.lane(0).open_depth.load() == 2);
    const schema::OpenEntry& inner = view.lane(0).open[1];
    const auto header = schema::RecordHeader::unpack(inner.what.load());
    CHECK(view.name(header.name) == "inner");
    CHECK(header.kind == RecordKind::kRange);
    CHECK(inner.key.load() == 3);
    CHECK(inner.argument.load() == 4);
    CHECK(inner.begin.load() >= view.lane(0).open[0].begin.load());
}

TEST_CASE("open stack: ranges beyond its depth are counted, those in it stay right") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        in_hook([](ThreadLane& lane) {
            for (std::uint64_t key = 1; key <= schema::kOpenStackDepth + 3; ++key)
                lane.begin_range(SourceId::kTorch, 0, lane.intern("r", 1), key, key);
            for (std::uint64_t key = schema::kOpenStackDepth + 3; key >= 1; --key)
                EXPECT(lane.end_range(key) == (key <= schema::kOpenStackDepth));
        });
    });
    const SegmentView view(box.segment_of(pid));
    CHECK(view.records(0).size() == schema::kOpenStackDepth);
    CHECK(view.loss(schema::Loss::kStackTooDeep) == 3);
    CHECK(view.lane(0).too_deep.load() == 3);
}

TEST_CASE("capture: a new one forgets what was open and the context of the one before") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        in_hook([](ThreadLane& lane) {
            lane.begin_range(SourceId::kTorch, 0, lane.intern("old", 3), 1, 0);
            lane.set_context(serving(5));
        });
        box.set_capture(false);
        {
            HookScope hook;
            EXPECT(!hook);
        }
        box.set_capture(true);
        in_hook([](ThreadLane& lane) {
            EXPECT(lane.context().key == 0);
            EXPECT(!lane.end_range(1));
        });
        mark(9);
        const SegmentView view(box.segments()[0]);
        const auto records = view.records(0);
        EXPECT(records.size() == 3);
        EXPECT(records[1].header.kind == RecordKind::kContext);
        EXPECT(records[1].words[2] == 0);
        EXPECT(records[2].words[2] == 9);
        EXPECT(view.lane(0).open_depth.load() == 0);
    });
}

TEST_CASE("capture: of selected processes only, the others record nothing") {
    Sandbox box;
    box.set_capture(true, true);
    box.run([&] {
        EXPECT(box.load());
        {
            HookScope hook;
            EXPECT(!hook);
        }
        const SegmentView view(box.segments()[0]);
        EXPECT(view.header().lanes_in_use.load() == 0);
        view.header().selected.store(1);
        box.set_capture(true, true);
        mark(1);
        EXPECT(view.header().lanes_in_use.load() == 1);
        EXPECT(view.loss(schema::Loss::kLaneRefused) == 0);
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
    box.control().process_budget_bytes.store(2 * 8192 + 100);
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        mark(1);
        std::thread second([] {
            mark(1);
            std::thread([] {
                for (int i = 0; i < 5; ++i) {
                    HookScope hook;
                    EXPECT(!hook);
                }
            }).join();
        });
        second.join();
        const SegmentView view(box.segments()[0]);
        EXPECT(view.header().lanes_in_use.load() == 2);
        EXPECT(view.loss(schema::Loss::kLaneRefused) == 5);
    });
}

TEST_CASE("hook: one inside another (a signal handler's) records nothing and is counted") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        signal(SIGUSR1, [](int) {
            HookScope inner;
            EXPECT(!inner);
        });
        in_hook([](ThreadLane& lane) {
            raise(SIGUSR1);
            lane.mark(SourceId::kApi, 0, lane.intern("m", 1), 1, 1);
        });
        mark(2);
        const SegmentView view(box.segments()[0]);
        EXPECT(view.records(0).size() == 2);
        EXPECT(view.loss(schema::Loss::kReentered) == 1);
    });
}

TEST_CASE("hook: errno survives a thread's first record, also a refused one") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        errno = 4242;
        mark(1);
        EXPECT(errno == 4242);
        box.control().process_budget_bytes.store(1);
        std::thread([] {
            errno = 4243;
            HookScope hook;
            EXPECT(!hook);
            EXPECT(errno == 4243);
        }).join();
    });
}

TEST_CASE("lane: memory comes as it is used, and a lane goes round once all of it is there") {
    Sandbox box;
    box.control().first_lane_kib.store(1024);
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        mark(0);
        struct stat status {};
        EXPECT(stat(box.segments()[0].c_str(), &status) == 0);
        EXPECT(status.st_blocks * 512 < 512 * 1024);
        const SegmentView view(box.segments()[0]);
        std::uint64_t next = 0;
        for (std::uint64_t i = 1; i < 100000; ++i) {
            mark(i);
            if (i % 10000 != 9999) continue;
            for (const ReadRecord& record : view.drain(0)) {
                EXPECT(record.header.kind == RecordKind::kMark);
                EXPECT(record.words[2] == next++);
            }
        }
        EXPECT(next == 100000);
        EXPECT(view.lane(0).dropped.load() == 0);
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
