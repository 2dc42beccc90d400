#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "inject/core/capture.hpp"
#include "inject/core/fork.hpp"
#include "inject/core/process.hpp"
#include "inject/core/segment_file.hpp"
#include "inject/core/slots/loader_walk.hpp"
#include "sandbox.hpp"

using namespace ringside;
using inject::HookScope;
using schema::SourceId;
using test::Sandbox;
using test::SegmentView;

namespace {

void mark(const char* name, std::uint64_t value) {
    HookScope hook;
    EXPECT(static_cast<bool>(hook));
    hook.lane().mark(SourceId::kApi, 0, hook.lane().intern_cached(name), value, 0);
}

void wait_for(pid_t child) {
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(status == 0);
}

}  // namespace

TEST_CASE("fork: the child records into a segment of its own, the parent's stays as it was") {
    Sandbox box;
    box.set_capture(true);

    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        inject::watch_forks();
        mark("parent", 1);
        const std::byte* base = inject::segment_base();
        const pid_t forked = fork();
        if (forked == 0) {
            EXPECT(inject::segment_base() == base);
            mark("child", 2);
            mark("parent", 3);
            _exit(0);
        }
        wait_for(forked);
        mark("parent", 4);
        EXPECT(box.segments().size() == 2);
        const SegmentView view(box.segment_of(forked));
        EXPECT(view.header().pid == forked);
        EXPECT(view.header().parent_pid == getpid());
        const auto records = view.records(0);
        EXPECT(records.size() == 2);
        EXPECT(records[0].name == "child");
        EXPECT(records[1].name == "parent");
    });

    const auto records = SegmentView(box.segment_of(pid)).records(0);
    REQUIRE(records.size() == 2);
    CHECK(records[0].words[2] == 1);
    CHECK(records[1].words[2] == 4);
}

TEST_CASE("fork: a child of a process that a capture has chosen is chosen, another's is not") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        inject::watch_forks();
        for (const std::uint32_t chosen : {1u, 0u}) {
            inject::g_process.header->selected.store(chosen);
            const pid_t forked = fork();
            if (forked == 0) {
                EXPECT(inject::has_segment());
                EXPECT(inject::g_process.header->selected.load() == chosen);
                _exit(0);
            }
            wait_for(forked);
        }
    });
}

TEST_CASE("fork: ids of names that the parent interned are right in the child") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        inject::watch_forks();
        schema::NameId remembered;
        {
            HookScope hook;
            EXPECT(static_cast<bool>(hook));
            remembered = hook.lane().intern("remembered", 10);
            inject::set_worker(remembered, 3);
        }
        const pid_t forked = fork();
        if (forked == 0) {
            {
                HookScope hook;
                EXPECT(static_cast<bool>(hook));
                hook.lane().mark(SourceId::kApi, 0, remembered, 1, 0);
                EXPECT(hook.lane().intern("remembered", 10) == remembered);
            }
            mark("new", 2);
            _exit(0);
        }
        wait_for(forked);
        const SegmentView view(box.segment_of(forked));
        const auto records = view.records(0);
        EXPECT(records.size() == 2);
        EXPECT(records[0].name == "remembered");
        EXPECT(records[1].name == "new");
        EXPECT(view.header().worker_id.load() == 3);
        EXPECT(view.name({view.header().worker_name.load()}) == "remembered");
        EXPECT(view.header().names_used.load() == 2 + 1);  // and "?"
    });
}

TEST_CASE(
    "fork: out of a hook (a signal handler's): the child ends it and is off; the parent's lane has "
    "what the parent wrote") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        inject::watch_forks();
        pid_t forked = -1;
        {
            const HookScope hook;
            EXPECT(static_cast<bool>(hook));
            inject::ThreadLane& lane = hook.lane();
            const schema::NameId name = lane.intern_cached("range");
            lane.begin_range(SourceId::kApi, 0, name, 7, 0);
            forked = fork();
            for (std::uint64_t i = 0; i < 100; ++i) lane.mark(SourceId::kApi, 0, name, i, 0);
            const bool ended = lane.end_range(7);
            EXPECT(forked == 0 || ended);
        }
        if (forked == 0) {
            const HookScope hook;
            EXPECT(!hook);
            _exit(0);
        }
        wait_for(forked);
        mark("after", 5);
        EXPECT(box.segments().size() == 1);
    });
    const auto records = SegmentView(box.segment_of(pid)).records(0);
    REQUIRE(records.size() == 102);
    CHECK(records[101].words[2] == 5);
}

TEST_CASE("fork: a dead parent's lock ends though its child lives") {
    Sandbox box;
    box.set_capture(true);
    int to_child[2];
    REQUIRE(pipe(to_child) == 0);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        inject::watch_forks();
        mark("parent", 1);
        int ready[2];
        EXPECT(pipe(ready) == 0);
        const pid_t forked = fork();
        if (forked == 0) {
            close(to_child[1]);
            EXPECT(inject::has_segment());
            close(ready[1]);
            char byte = 0;
            EXPECT(read(to_child[0], &byte, 1) == 0);  // until the test is done
            _exit(0);
        }
        close(ready[1]);
        char byte = 0;
        EXPECT(read(ready[0], &byte, 1) == 0);  // the child has its segment
    });
    CHECK_FALSE(SegmentView(box.segment_of(pid)).locked());
    const auto paths = box.segments();
    REQUIRE(paths.size() == 2);
    int locked = 0;
    for (const std::string& path : paths) locked += SegmentView(path).locked() ? 1 : 0;
    CHECK(locked == 1);
    close(to_child[1]);
    close(to_child[0]);
}

TEST_CASE("fork: off and without a framework the child has no segment until it needs one") {
    Sandbox box;
    box.control();
    box.run([&] {
        EXPECT(box.load());
        inject::watch_forks();
        const pid_t forked = fork();
        if (forked == 0) {
            EXPECT(!inject::has_segment());
            EXPECT(box.segments().size() == 1);
            const pid_t grandchild = fork();
            if (grandchild == 0) _exit(inject::has_segment() ? 1 : 0);
            wait_for(grandchild);
            inject::make_pending_segment();
            EXPECT(inject::has_segment());
            inject::make_pending_segment();
            EXPECT(box.segments().size() == 2);
            box.set_capture(true);
            mark("child", 1);
            _exit(0);
        }
        wait_for(forked);
        EXPECT(SegmentView(box.segment_of(forked)).records(0).size() == 1);
    });
}

TEST_CASE("fork: where the child's segment can't be made it runs untraced") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        inject::watch_forks();
        mark("parent", 1);
        EXPECT(std::rename(box.job_directory().c_str(), (box.root() + "/gone").c_str()) == 0);
        EXPECT(chmod(box.root().c_str(), 0777) == 0);  // refused: others may write it
        const pid_t forked = fork();
        if (forked == 0) {
            HookScope hook;
            EXPECT(!hook);
            EXPECT(!inject::has_segment());
            _exit(0);
        }
        wait_for(forked);
        mark("parent", 2);
    });
}

TEST_CASE(
    "fork: another thread's walk through the loaded objects is over before the child is made") {
    Sandbox box;
    box.run([&] {
        EXPECT(box.load());
        inject::watch_forks();
        static std::atomic<bool> walking{false};
        // It holds the loader's lock until a fork waits for it: without that it goes on for longer than the fork takes, and the child has it locked for ever.
        std::thread walker([] {
            inject::walk_objects(
                [](dl_phdr_info*, std::size_t, void*) {
                    walking = true;
                    const bool held = test::eventually(inject::walks_are_held);
                    return held ? 1 : 2;
                },
                nullptr);
        });
        EXPECT(test::eventually([] { return walking.load(); }));
        const pid_t forked = fork();
        if (forked == 0) {
            alarm(10);
            const auto look = [](dl_phdr_info*, std::size_t, void*) { return 3; };
            EXPECT(dl_iterate_phdr(look, nullptr) == 3);
            EXPECT(inject::walk_objects(look, nullptr) == 3);
            _exit(0);
        }
        walker.join();
        wait_for(forked);
        EXPECT(!inject::walks_are_held());
    });
}

TEST_CASE("fork: out of a walk of its own thread the fork and the walk both end") {
    Sandbox box;
    box.run([&] {
        EXPECT(box.load());
        inject::watch_forks();
        const int status = inject::walk_objects(
            [](dl_phdr_info*, std::size_t, void*) {
                const pid_t forked = fork();
                if (forked == 0) _exit(0);
                wait_for(forked);
                return 1;
            },
            nullptr);
        EXPECT(status == 1);
        EXPECT(!inject::walks_are_held());
    });
}
