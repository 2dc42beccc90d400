// What the shim does where the kernel is older than its calls, or a container's filter refuses them.
#include <doctest/doctest.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "inject/core/capture.hpp"
#include "inject/core/helper_thread.hpp"
#include "inject/core/process.hpp"
#include "refused_call.hpp"
#include "sandbox.hpp"

using namespace ringside;
using inject::Place;
using test::eventually;
using test::Sandbox;
using test::SegmentView;

namespace {

constexpr long kFutexWaitv = 449;

std::atomic<int> g_attached{0};
std::atomic<int> g_detached{0};

const inject::Source kFake = {
    schema::SourceId::kTorch,
    "fake",
    [] { return true; },
    [] {},
    [](const inject::AttachRequest&) { ++g_attached; },
    [] { ++g_detached; },
};

void load(const Sandbox& box) {
    static const inject::Source* sources[] = {&kFake};
    EXPECT(box.load());
    inject::set_sources(sources, 1);
    inject::ensure_helper_thread();
}

/// What all threads of this process but the first have had of a processor, in nanoseconds.
std::uint64_t others_cpu_ns() {
    std::uint64_t sum = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        if (task.path().filename() == std::to_string(getpid())) continue;
        std::uint64_t ns = 0;
        std::ifstream(task.path() / "schedstat") >> ns;
        sum += ns;
    }
    return sum;
}

std::size_t threads() {
    std::size_t count = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
        count += task.path().empty() ? 0 : 1;
    return count;
}

/// Captures start and end, and the helper sleeps while one runs and while none does.
void follow_captures(Sandbox& box) {
    const SegmentView view(box.segments()[0]);
    for (const bool on : {true, false, true}) {
        const std::uint32_t word = box.set_capture(on);
        EXPECT(eventually([&] { return view.header().attached_word.load() == word; }));
        const std::uint64_t before = others_cpu_ns();
        // A stretch of time to measure in, not a wait for something.
        const timespec stretch{0, 500'000'000};
        nanosleep(&stretch, nullptr);
        const std::uint64_t used = others_cpu_ns() - before;
        if (used > 50'000'000)
            std::fprintf(stderr, "the helper took %.0f ms of 500\n",
                         static_cast<double>(used) / 1e6);
        EXPECT(used <= 50'000'000);
    }
    EXPECT(g_attached == 2);
    EXPECT(g_detached == 1);
}

}  // namespace

TEST_CASE("kernels: where a filter answers futex_waitv() by EPERM the helper sleeps and follows") {
    Sandbox box;
    box.control();
    box.run([&] {
        EXPECT(test::refuse_call({kFutexWaitv, EPERM}));
        load(box);
        follow_captures(box);
    });
}

TEST_CASE(
    "kernels: where no futex of two processes can be waited for the helper looks now and then") {
    Sandbox box;
    box.control();
    box.run([&] {
        EXPECT(test::refuse_call({kFutexWaitv, EPERM}));
        EXPECT(test::refuse_call({SYS_futex, EPERM, 1, FUTEX_WAIT}));
        load(box);
        follow_captures(box);
    });
}

TEST_CASE("kernels: where nothing lets a thread sleep there is none, as by RINGSIDE_THREAD=0") {
    Sandbox box;
    box.control();
    box.run([&] {
        EXPECT(test::refuse_call({kFutexWaitv, EPERM}));
        EXPECT(test::refuse_call({SYS_futex, EPERM, 1, FUTEX_WAIT}));
        EXPECT(test::refuse_call({SYS_nanosleep, EPERM}));
        EXPECT(test::refuse_call({SYS_clock_nanosleep, EPERM}));
        load(box);
        EXPECT(eventually([] { return !inject::has_helper_thread() && threads() == 1; }));
        const std::uint32_t word = box.set_capture(true);
        EXPECT(inject::catch_up(Place::kUnknown) == word);  // as the next dlopen() does
        EXPECT(g_attached == 1);
        EXPECT(inject::g_living.watched_word.load() == 0);
    });
}
