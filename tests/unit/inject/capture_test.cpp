#include <dlfcn.h>
#include <doctest/doctest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "inject/core/capture.hpp"
#include "inject/core/fork.hpp"
#include "inject/core/helper_thread.hpp"
#include "inject/core/process.hpp"
#include "inject/core/slots/slots.hpp"
#include "sandbox.hpp"

using namespace ringside;
using inject::Place;
using schema::SourceLevel;
using test::eventually;
using test::Sandbox;
using test::SegmentView;

namespace {

std::atomic<bool> g_present{true};
std::atomic<int> g_prepared{0};
std::atomic<int> g_attached{0};
std::atomic<int> g_detached{0};
std::atomic<std::uint32_t> g_options{0};
void (*g_while_attaching)() = nullptr;

// A framework made of counters.
const inject::Source kFake = {
    schema::SourceId::kTorch,
    "fake",
    [] { return g_present.load(); },
    [] { ++g_prepared; },
    [](const inject::AttachRequest& request) {
        g_options.store(request.options);
        inject::set_level(schema::SourceId::kTorch, SourceLevel::kDegraded, "only a fake");
        if (g_while_attaching != nullptr) g_while_attaching();
        ++g_attached;
    },
    [] { ++g_detached; },
};

void load(const Sandbox& box) {
    static const inject::Source* sources[] = {&kFake};
    EXPECT(box.load());
    inject::set_sources(sources, 1);
    inject::watch_forks();
}

SourceLevel level(const SegmentView& view) {
    return static_cast<SourceLevel>(view.header().sources[1].level.load());
}

std::size_t threads() {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
        (void)entry;
        ++count;
    }
    return count;
}

}  // namespace

TEST_CASE("capture: on at load attaches at once and says which word was acted on") {
    Sandbox box;
    box.control().options.store(3);
    const std::uint32_t word = box.set_capture(true);
    box.run([&] {
        load(box);
        EXPECT(inject::catch_up(Place::kOutsideLoader) == word);
        const SegmentView view(box.segments()[0]);
        EXPECT(g_prepared == 1);
        EXPECT(g_attached == 1);
        EXPECT(g_options == 3);
        EXPECT(view.header().attached_word.load() == word);
        EXPECT(view.header().capture_clock.ticks >= view.header().load_clock.ticks);
        EXPECT(level(view) == SourceLevel::kDegraded);
        char reason[schema::kReasonBytes];
        std::memcpy(reason, &view.header().sources[1].reason, sizeof reason);
        EXPECT(std::string(reason) == "only a fake");
        inject::catch_up(Place::kOutsideLoader);
        EXPECT(g_attached == 1);
        const std::uint32_t off = box.set_capture(false);
        EXPECT(inject::catch_up(Place::kOutsideLoader) == off);
        EXPECT(g_detached == 1);
        EXPECT(level(view) == SourceLevel::kOff);
        EXPECT(view.header().attached_word.load() == off);
        EXPECT(g_prepared == 1);
    });
}

TEST_CASE("capture: without a framework nothing is acted on and the word stays behind") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        g_present = false;
        load(box);
        inject::catch_up(Place::kOutsideLoader);
        const SegmentView view(box.segments()[0]);
        EXPECT(g_attached == 0);
        EXPECT(view.header().attached_word.load() == 0);
        EXPECT(level(view) == SourceLevel::kAbsent);
    });
}

TEST_CASE("capture: a framework that may not be initialised yet is left for later") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        load(box);
        inject::catch_up(Place::kUnknown);
        EXPECT(g_attached == 0);
        inject::catch_up(Place::kOutsideLoader);
        EXPECT(g_attached == 1);
    });
}

TEST_CASE("capture: a masked source stays off") {
    Sandbox box;
    box.control().source_mask.store(~(1u << 1));
    const std::uint32_t word = box.set_capture(true);
    box.run([&] {
        load(box);
        inject::catch_up(Place::kOutsideLoader);
        const SegmentView view(box.segments()[0]);
        EXPECT(g_attached == 0);
        EXPECT(level(view) == SourceLevel::kOff);
        EXPECT(view.header().attached_word.load() == word);
    });
}

TEST_CASE("capture: objects loaded while it runs are prepared and attached too") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        load(box);
        inject::catch_up(Place::kOutsideLoader);
        EXPECT(dlopen(getenv("RINGSIDE_TEST_CALLER"), RTLD_NOW) != nullptr);
        inject::catch_up(Place::kUnknown);
        EXPECT(g_prepared == 2);
        EXPECT(g_attached == 2);
    });
}

TEST_CASE("capture: a child that no handler saw attaches nothing, whatever it loads") {
    Sandbox box;
    const std::uint32_t word = box.set_capture(true);
    box.run([&] {
        g_present = false;
        load(box);
        const pid_t child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
        if (child == 0) {
            g_present = true;
            EXPECT(inject::catch_up(Place::kOutsideLoader) != word);
            EXPECT(g_attached == 0);
            EXPECT(inject::g_living.watched_word.load() == 0);
            std::_Exit(0);
        }
        int status = 0;
        EXPECT(waitpid(child, &status, 0) == child);
        EXPECT(status == 0);
        const SegmentView view(box.segments()[0]);
        EXPECT(level(view) == SourceLevel::kAbsent);
        EXPECT(view.header().attached_word.load() == 0);
    });
}

TEST_CASE("capture: a child that no handler saw, made before any capture, records nothing in one") {
    Sandbox box;
    box.control();
    box.run([&] {
        load(box);
        int go[2];
        EXPECT(pipe(go) == 0);
        const pid_t child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
        if (child == 0) {
            char byte = 0;
            EXPECT(read(go[0], &byte, 1) == 1);
            EXPECT((inject::capture_word() & 1) == 1);
            const inject::HookScope hook;
            EXPECT(!hook);
            std::_Exit(0);
        }
        box.set_capture(true);
        EXPECT(write(go[1], "", 1) == 1);
        int status = 0;
        EXPECT(waitpid(child, &status, 0) == child);
        EXPECT(status == 0);
        const SegmentView view(box.segments()[0]);
        EXPECT(view.header().lanes_in_use.load() == 0);
        const inject::HookScope hook;
        EXPECT(hook);
        EXPECT(view.header().lanes_in_use.load() == 1);
    });
}

TEST_CASE("helper: it follows the word, prepares while nothing runs, and takes no signal") {
    Sandbox box;
    box.control();
    box.run([&] {
        load(box);
        EXPECT(threads() == 1);
        inject::ensure_helper_thread();
        inject::ensure_helper_thread();
        EXPECT(threads() == 2);
        EXPECT(eventually([] { return g_prepared == 1; }));
        const SegmentView view(box.segments()[0]);
        for (int round = 1; round <= 20; ++round) {
            const std::uint32_t on = box.set_capture(true);
            EXPECT(eventually([&] { return view.header().attached_word.load() == on; }));
            EXPECT(g_attached == round);
            const std::uint32_t off = box.set_capture(false);
            EXPECT(eventually([&] { return view.header().attached_word.load() == off; }));
            EXPECT(g_detached == round);
        }
        EXPECT(g_prepared == 1);
        static std::atomic<pid_t> handled_by{0};
        signal(SIGUSR1, [](int) { handled_by.store(gettid()); });
        kill(getpid(), SIGUSR1);
        EXPECT(eventually([] { return handled_by.load() != 0; }));
        EXPECT(handled_by == getpid());
    });
}

TEST_CASE(
    "helper: a process that is chosen while a capture runs attaches when it is woken, not before") {
    Sandbox box;
    box.control();
    box.run([&] {
        load(box);
        inject::ensure_helper_thread();
        EXPECT(eventually([] { return g_prepared == 1; }));
        const SegmentView view(box.segments()[0]);
        const std::uint32_t on = box.set_capture(true, true);
        EXPECT(eventually([&] { return inject::acted_word() == on; }));
        EXPECT(g_attached == 0);
        EXPECT(view.header().attached_word.load() != on);
        view.header().selected.store(1);
        EXPECT(eventually([&] {
            box.wake();
            return view.header().attached_word.load() == on;
        }));
        EXPECT(g_attached == 1);
        EXPECT(view.header().capture_clock.ticks != 0);
        const std::uint32_t off = box.set_capture(false);
        EXPECT(eventually([&] { return view.header().attached_word.load() == off; }));
        EXPECT(g_detached == 1);
    });
}

TEST_CASE("helper: woken, it looks at objects that were loaded while a capture runs") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        load(box);
        inject::ensure_helper_thread();
        EXPECT(eventually([] { return g_attached == 1; }));
        EXPECT(dlopen(getenv("RINGSIDE_TEST_CALLER"), RTLD_NOW) != nullptr);
        inject::wake_helper_thread();
        EXPECT(eventually([] { return g_attached == 2; }));
    });
}

TEST_CASE("helper: where it is not allowed there is none") {
    Sandbox box;
    box.set_capture(true);
    box.run([&] {
        load(box);
        inject::allow_helper_thread(false);
        inject::ensure_helper_thread();
        EXPECT(!inject::has_helper_thread());
        EXPECT(threads() == 1);
    });
}

TEST_CASE("helper: a forked child has its own, and attaches on its own") {
    Sandbox box;
    box.control();
    box.run([&] {
        load(box);
        inject::catch_up(Place::kOutsideLoader);
        inject::ensure_helper_thread();
        EXPECT(eventually([] { return g_prepared == 1; }));
        const pid_t child = fork();
        if (child == 0) {
            EXPECT(threads() == 2);
            const SegmentView view(box.segment_of(getpid()));
            EXPECT(level(view) == SourceLevel::kOff);
            const std::uint32_t on = box.set_capture(true);
            EXPECT(eventually([&] { return view.header().attached_word.load() == on; }));
            EXPECT(g_attached == 1);
            _exit(0);
        }
        int status = 0;
        EXPECT(waitpid(child, &status, 0) == child && status == 0);
        EXPECT(eventually([] { return g_attached == 1; }));
    });
}

TEST_CASE(
    "helper: a forked child's is made after the handlers of whoever was there before the "
    "parent's") {
    Sandbox box;
    box.control();
    box.run([&] {
        load(box);
        // An allocator that registers at its first allocation, after our constructor has run, and gives back its locks in the child.
        EXPECT(pthread_atfork(nullptr, nullptr, [] { EXPECT(threads() == 1); }) == 0);
        inject::catch_up(Place::kOutsideLoader);
        inject::ensure_helper_thread();
        const pid_t child = fork();
        if (child == 0) {
            EXPECT(threads() == 2);
            _exit(0);
        }
        int status = 0;
        EXPECT(waitpid(child, &status, 0) == child && status == 0);
    });
}

TEST_CASE("helper: a fork waits for it while it attaches, and the child attaches, too") {
    Sandbox box;
    box.control();
    box.run([&] {
        static std::atomic<bool> attaching{false}, forking{false}, forked{false};
        g_while_attaching = [] {
            attaching = true;
            EXPECT(eventually([] { return forking.load(); }));
            // A fork that does not wait is over by then, and has left the child with a mutex that nobody gives back.
            for (int i = 0; i < 200 && !forked; ++i)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            EXPECT(!forked);
        };
        load(box);
        EXPECT(pthread_atfork([] { forking = true; }, [] { forked = true; }, nullptr) == 0);
        inject::catch_up(Place::kOutsideLoader);
        inject::ensure_helper_thread();
        box.set_capture(true);
        EXPECT(eventually([] { return attaching.load(); }));
        const pid_t child = fork();
        if (child == 0) {
            g_while_attaching = nullptr;
            alarm(20);
            EXPECT(eventually([] { return g_attached == 2; }));
            _exit(0);
        }
        int status = 0;
        EXPECT(waitpid(child, &status, 0) == child && status == 0);
    });
}

TEST_CASE("capture: once exit() is under way no source is attached or detached any more") {
    Sandbox box;
    box.run([&] {
        static Sandbox* sandbox = nullptr;
        sandbox = &box;
        load(box);
        box.set_capture(true);
        inject::catch_up(Place::kOutsideLoader);
        EXPECT(g_attached == 1);
        // Of two that are registered the later one comes first: this one looks at what is left then.
        EXPECT(std::atexit([] {
                   sandbox->set_capture(false);
                   inject::catch_up(Place::kOutsideLoader);
                   EXPECT(g_detached == 0);
                   sandbox->set_capture(true);
                   inject::catch_up(Place::kOutsideLoader);
                   EXPECT(g_attached == 1);
                   std::_Exit(0);
               }) == 0);
        inject::end_acting_at_exit();
        std::exit(1);  // NOLINT(concurrency-mt-unsafe): one thread
    });
}
