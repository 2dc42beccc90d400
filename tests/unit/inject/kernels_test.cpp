// What the shim does where the kernel is older than its calls, or a container's filter refuses them.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "inject/core/budget.hpp"
#include "inject/core/capture.hpp"
#include "inject/core/helper_thread.hpp"
#include "inject/core/open_calls.hpp"
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
constexpr std::uint32_t kPopulateWrite = 23;

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

/// Linux before 5.14, and what filters say instead.
bool without_populate(int error) {
    return test::refuse_call({SYS_madvise, error, 2, kPopulateWrite});
}

std::uint64_t own_loss(schema::Loss loss) {
    return inject::g_process.header->losses[static_cast<std::uint32_t>(loss)].load();
}

/// @return whether a file system of that size lies there now, for this process alone
bool mount_small(const std::string& folder, const char* size) {
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    const std::string options = std::string("mode=0700,size=") + size;
    return mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           mount("tmpfs", folder.c_str(), "tmpfs", 0, options.c_str()) == 0;
}

void fill_file_system(const std::string& folder) {
    const int file = open((folder + "/filler").c_str(), O_WRONLY | O_CREAT, 0600);
    EXPECT(file >= 0);
    static const char kPage[schema::kPageBytes]{1};
    while (write(file, kPage, sizeof kPage) == sizeof kPage) {
    }
    EXPECT(errno == ENOSPC);
    close(file);
}

std::byte* map_sparse(const std::string& folder, std::size_t bytes) {
    const int file = open((folder + "/sparse").c_str(), O_RDWR | O_CREAT, 0600);
    EXPECT(file >= 0);
    EXPECT(ftruncate(file, static_cast<off_t>(bytes)) == 0);
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    EXPECT(memory != MAP_FAILED);
    close(file);
    return static_cast<std::byte*>(memory);
}

void mark(std::uint64_t value) {
    inject::HookScope hook;
    if (hook)
        hook.lane().mark(schema::SourceId::kApi, 0, hook.lane().intern_cached("mark"), value, 0);
}

}  // namespace

TEST_CASE("kernels: before 5.14, and where a filter refuses it, memory is made real all the same") {
    for (const int error : {EINVAL, EPERM, ENOSYS}) {
        Sandbox box;
        box.control().first_lane_kib.store(4);
        box.set_capture(true);
        const pid_t pid = box.run([&] {
            EXPECT(without_populate(error));
            EXPECT(madvise(&g_attached, 1, kPopulateWrite) == -1);
            EXPECT(box.load());
            for (std::uint64_t i = 0; i < 1000; ++i)
                mark(i);  // more than the first ring has room for
            EXPECT(inject::own_open_call() != nullptr);
        });
        const SegmentView view(box.segment_of(pid));
        CHECK(view.header().lanes_in_use.load() == 1);
        CHECK(view.lane(0).records.load() == 1000);
        CHECK(view.lane(0).dropped.load() == 0);
        for (std::uint32_t i = 0; i < schema::kLossCounters; ++i)
            CHECK(view.header().losses[i].load() == 0);
        struct stat status {};
        CHECK(stat(box.segment_of(pid).c_str(), &status) == 0);
        CHECK(static_cast<std::uint64_t>(status.st_blocks) * 512 >=
              view.header().real_bytes.load());
    }
}

TEST_CASE("kernels: what lies in memory stays while it is made real page by page") {
    Sandbox box;
    box.run([&] {
        EXPECT(without_populate(EINVAL));
        constexpr std::size_t kBytes = 64 * schema::kPageBytes;
        std::byte* const memory = map_sparse(box.root(), kBytes);
        memory[0] = std::byte{1};
        memory[5 * schema::kPageBytes + 3] = std::byte{2};
        EXPECT(inject::populate(memory, kBytes));
        struct stat status {};
        EXPECT(stat((box.root() + "/sparse").c_str(), &status) == 0);
        EXPECT(status.st_blocks * 512 == static_cast<blkcnt_t>(kBytes));
        EXPECT(memory[0] == std::byte{1});
        EXPECT(memory[5 * schema::kPageBytes + 3] == std::byte{2});
        EXPECT(memory[kBytes - 1] == std::byte{0});
    });
}

TEST_CASE("kernels: a full file system is a refusal and no signal, whatever the kernel has") {
    for (const bool old : {false, true}) {
        Sandbox box;
        box.run([&] {
            if (!mount_small(box.root(), "256k")) {
                std::fprintf(stderr, "skipped: nothing can be mounted here\n");
                return;
            }
            EXPECT(!old || without_populate(EINVAL));
            std::byte* const memory = map_sparse(box.root(), 1 << 20);
            EXPECT(inject::populate(memory, 64 << 10));
            EXPECT(!inject::populate(memory, 1 << 20));
        });
    }
}

TEST_CASE("kernels: a file system that fills up unseen turns recording off, and says why") {
    for (const bool old : {false, true}) {
        Sandbox box;
        box.run([&] {
            if (!mount_small(box.root(), "256k")) {
                std::fprintf(stderr, "skipped: nothing can be mounted here\n");
                return;
            }
            EXPECT(!old || without_populate(EINVAL));
            EXPECT(test::refuse_call({SYS_statfs, ENOSYS}));  // what is free is not told
            box.set_capture(true);
            EXPECT(box.load());
            fill_file_system(box.root());
            mark(1);
            EXPECT(inject::own_open_call() == nullptr);
            EXPECT(own_loss(schema::Loss::kLaneRefused) == 1);
            EXPECT(own_loss(schema::Loss::kRefusedByFileSystem) == 1);
            EXPECT(own_loss(schema::Loss::kRefusedByKernel) == 0);
        });
    }
}

TEST_CASE("kernels: where nothing makes memory real that is the reason, and not the file system") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(without_populate(EPERM));
        EXPECT(test::refuse_call({SYS_futex, EPERM, 1, FUTEX_WAKE_OP_PRIVATE}));
        EXPECT(box.load());
        mark(1);
    });
    const SegmentView view(box.segment_of(pid));
    CHECK(view.loss(schema::Loss::kLaneRefused) == 1);
    CHECK(view.loss(schema::Loss::kRefusedByKernel) == 1);
    CHECK(view.loss(schema::Loss::kRefusedByFileSystem) == 0);
}

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
