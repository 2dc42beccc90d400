// What hooks write: each kind of record, the context, and the open ranges that a lane shows of the living and the dead.
#include <doctest/doctest.h>
#include <signal.h>

#include "hooks.hpp"

using namespace ringside;
using inject::ThreadLane;
using schema::ContextState;
using schema::RecordKind;
using schema::SourceId;
using test::in_hook;
using test::Sandbox;
using test::SegmentView;
using test::serving;

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
            EXPECT(lane.end_operator(9, {-1, 3, 2, 1}));
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
