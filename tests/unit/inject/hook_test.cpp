// When a hook records, and when it does not: off, another capture, a process that is not selected, a hook inside another; errno.
#include <doctest/doctest.h>
#include <signal.h>

#include <cerrno>
#include <thread>

#include "hooks.hpp"

using namespace ringside;
using inject::HookScope;
using inject::ThreadLane;
using schema::RecordKind;
using schema::SourceId;
using test::in_hook;
using test::mark;
using test::Sandbox;
using test::SegmentView;
using test::serving;

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
        // Chosen while it runs: one that came a moment before the agent saw it.
        view.header().selected.store(1);
        mark(1);
        EXPECT(view.header().lanes_in_use.load() == 1);
        box.set_capture(true, true);
        mark(2);
        EXPECT(view.header().lanes_in_use.load() == 1);
        EXPECT(view.loss(schema::Loss::kLaneRefused) == 0);
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

TEST_CASE("hook: of a source that the capture leaves out no lane is opened, and nothing is lost") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        box.control().source_mask.store(inject::bit_of(SourceId::kTorch));
        const SegmentView view(box.segments()[0]);
        const auto hook = [] {
            HookScope unwanted(SourceId::kNvtx);
            EXPECT(!unwanted);
        };
        hook();
        EXPECT(view.header().lanes_in_use.load() == 0);
        EXPECT(view.header().real_bytes.load() == 0);
        box.control().process_budget_bytes.store(1);
        hook();
        {
            HookScope refused(SourceId::kTorch);
            EXPECT(!refused);
        }
        hook();
        EXPECT(view.loss(schema::Loss::kLaneRefused) == 1);
        EXPECT(view.loss(schema::Loss::kRefusedByProcess) == 1);
    });
}

TEST_CASE("hook: of a source that the capture leaves out one inside another is not counted") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        box.control().source_mask.store(inject::bit_of(SourceId::kApi));
        in_hook([](ThreadLane& lane) {
            HookScope unwanted(SourceId::kNvtx);
            EXPECT(!unwanted);
            HookScope wanted(SourceId::kApi);
            EXPECT(!wanted);
            lane.mark(SourceId::kApi, 0, lane.intern("m", 1), 1, 1);
        });
        {
            // On a thread that has its lane, too.
            HookScope unwanted(SourceId::kNvtx);
            EXPECT(!unwanted);
        }
        const SegmentView view(box.segments()[0]);
        EXPECT(view.records(0).size() == 1);
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
