#include <dirent.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "inject/core/process.hpp"
#include "inject/core/segment_file.hpp"
#include "refused_call.hpp"
#include "sandbox.hpp"

using namespace ringside;
using test::Sandbox;
using test::SegmentView;

namespace {

int open_descriptors() {
    int count = 0;
    DIR* directory = opendir("/proc/self/fd");
    while (readdir(directory) != nullptr) ++count;
    closedir(directory);
    return count;
}

void record_one() {
    inject::HookScope hook;
    EXPECT(static_cast<bool>(hook));
    hook.lane().mark(schema::SourceId::kApi, 0, hook.lane().intern("one", 3), 1, 2);
}

}  // namespace

TEST_CASE("segment: a process says who it is, is locked while it lives, and keeps no descriptor") {
    Sandbox box;
    const pid_t pid = box.run([&] {
        setenv("RANK", "7", 1);
        const int before = open_descriptors();
        EXPECT(box.load());
        EXPECT(open_descriptors() == before);
        EXPECT(box.segments().size() == 1);
        EXPECT(SegmentView(box.segments()[0]).locked());
    });
    const SegmentView view(box.segment_of(pid));
    CHECK_FALSE(view.locked());
    const schema::SegmentHeader& header = view.header();
    CHECK(header.magic == schema::kSegmentMagic);
    CHECK(header.layout == schema::kSegmentLayout);
    CHECK(header.mark == schema::kMachineMark);
    CHECK(header.state.load() == static_cast<std::uint32_t>(schema::SegmentState::kReady));
    CHECK(header.pid == pid);
    CHECK(header.parent_pid == getpid());
    CHECK(header.rank == 7);
    CHECK(header.size_bytes == schema::kSegmentBytes);
    CHECK(header.load_clock.ticks > 0);
    CHECK(header.load_clock.realtime_ns > 0);
    CHECK(std::strstr(header.executable, "unit_inject") != nullptr);
    CHECK(std::memcmp(header.command_line, "program\0--option\0\0", 18) == 0);
    CHECK(std::strcmp(header.job, "job") == 0);
    struct stat status {};
    CHECK(stat(box.segment_of(pid).c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);
    CHECK(status.st_size == static_cast<off_t>(schema::kSegmentBytes));
    CHECK(status.st_blocks * 512 == static_cast<blkcnt_t>(schema::kPageBytes));
}

TEST_CASE("segment: where nothing was recorded it is unlinked at exit") {
    Sandbox box;
    box.run([&] {
        EXPECT(box.load());
        inject::close_segment();
    });
    CHECK(box.segments().empty());
}

TEST_CASE("segment: where something was recorded it stays, marked closing") {
    Sandbox box;
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        record_one();
        inject::close_segment();
    });
    const SegmentView view(box.segment_of(pid));
    CHECK(view.header().state.load() == static_cast<std::uint32_t>(schema::SegmentState::kClosing));
    CHECK(view.records(0).size() == 1);
}

TEST_CASE("segment: a vfork child that exits does not close its parent's") {
    Sandbox box;
    box.run([&] {
        EXPECT(box.load());
        inject::g_process.header->pid = getppid();  // as such a child sees it: another one's
        inject::close_segment();
        EXPECT(box.segments().size() == 1);
    });
}

TEST_CASE(
    "segment: a kernel without openat2() is no hindrance, for the first process nor for the next") {
    Sandbox box;
    box.run([&] {
        EXPECT(test::refuse_call({SYS_openat2, ENOSYS}));
        EXPECT(syscall(SYS_openat2, AT_FDCWD, "/", nullptr, 0) == -1 && errno == ENOSYS);
        const pid_t first = fork();
        if (first == 0) {
            EXPECT(box.load());
            const pid_t second = fork();
            if (second == 0) std::_Exit(box.load() && box.segments().size() == 2 ? 0 : 1);
            int status = 0;
            EXPECT(waitpid(second, &status, 0) == second);
            std::_Exit(status);
        }
        int status = 0;
        EXPECT(waitpid(first, &status, 0) == first);
        EXPECT(status == 0);
    });
}

TEST_CASE(
    "segment: in a pid namespace of its own, with the machine's /proc, a process is told from the "
    "machine's") {
    Sandbox box;
    const pid_t machine = box.run([&] { EXPECT(box.load()); });
    const std::uint64_t machines = SegmentView(box.segment_of(machine)).header().pid_namespace;
    box.run([&] {
        if (unshare(CLONE_NEWPID) != 0) EXPECT(unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0);
        const pid_t inner = fork();
        if (inner == 0) {
            EXPECT(getpid() == 1);
            EXPECT(box.load());
            struct stat status {};
            EXPECT(stat("/proc/self/ns/pid", &status) == 0);
            EXPECT(inject::g_process.header->pid_namespace == status.st_ino);
            EXPECT(inject::g_process.header->pid_namespace != machines);
            std::_Exit(0);
        }
        int status = 0;
        EXPECT(waitpid(inner, &status, 0) == inner);
        EXPECT(status == 0);
    });
}

TEST_CASE("control page: many processes at once make one") {
    Sandbox box;
    box.run([&] {
        int gate[2], loaded[2], leave[2];
        EXPECT(pipe(gate) == 0 && pipe(loaded) == 0 && pipe(leave) == 0);
        pid_t children[8];
        for (pid_t& child : children) {
            child = fork();
            if (child == 0) {
                close(gate[1]);
                close(leave[1]);
                char byte = 0;
                EXPECT(read(gate[0], &byte, 1) == 0);  // all go when the pipe is closed
                EXPECT(box.load());
                EXPECT(write(loaded[1], &byte, 1) == 1);
                EXPECT(read(leave[0], &byte, 1) == 0);
                _exit(0);
            }
        }
        close(gate[1]);
        // Those that have ended are swept by the next that starts: so all live until all are there.
        for (int i = 0; i < 8; ++i) {
            char byte = 0;
            EXPECT(read(loaded[0], &byte, 1) == 1);
        }
        close(leave[1]);
        for (const pid_t child : children) {
            int status = 0;
            EXPECT(waitpid(child, &status, 0) == child && status == 0);
        }
    });
    CHECK(box.segments().size() == 8);
    int files = 0;
    DIR* directory = opendir(box.job_directory().c_str());
    while (const dirent* entry = readdir(directory)) files += entry->d_name[0] != '.' ? 1 : 0;
    rewinddir(directory);
    int hidden = 0;
    while (const dirent* entry = readdir(directory))
        hidden += std::strncmp(entry->d_name, ".control", 8) == 0 ? 1 : 0;
    closedir(directory);
    CHECK(files == 9);  // and the control page
    CHECK(hidden == 0);
}

TEST_CASE("job directory: a link in its place is not followed") {
    Sandbox box;
    Sandbox elsewhere;
    CHECK(symlink(elsewhere.root().c_str(), box.job_directory().c_str()) == 0);
    box.run([&] { EXPECT(!box.load()); });
    CHECK(elsewhere.segments().empty());
}

TEST_CASE("job directory: one that others may write is not used") {
    Sandbox box;
    CHECK(mkdir(box.job_directory().c_str(), 0700) == 0);
    CHECK(chmod(box.job_directory().c_str(), 0777) == 0);
    box.run([&] { EXPECT(!box.load()); });
    CHECK(box.segments().empty());
}

TEST_CASE("job directory: names that are no plain file name are refused") {
    Sandbox box;
    box.run([] {
        inject::JobPath path;
        setenv("RINGSIDE_DIR", "/dev/shm/somewhere", 1);
        setenv("RINGSIDE_JOB", "../other", 1);
        EXPECT(!inject::read_job_path(path));
        setenv("RINGSIDE_JOB", "fine", 1);
        EXPECT(inject::read_job_path(path));
        setenv("RINGSIDE_DIR", "relative", 1);
        EXPECT(!inject::read_job_path(path));
        unsetenv("RINGSIDE_DIR");
        unsetenv("RINGSIDE_JOB");
        setenv("SLURM_JOB_ID", "4711", 1);
        EXPECT(inject::read_job_path(path));
        EXPECT(std::strcmp(path.job.c_str(), "4711") == 0);
    });
}

TEST_CASE("segment: a process that may not make large files is left alone") {
    Sandbox box;
    box.run([&] {
        const rlimit limit{1 << 20, RLIM_INFINITY};
        EXPECT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        EXPECT(!box.load());
        EXPECT(inject::capture_word() == 0);
    });
    CHECK(box.segments().empty());
}

TEST_CASE("control page: one of another layout means off") {
    Sandbox box;
    box.control().layout = 99;
    box.set_capture(true);
    box.run([&] {
        EXPECT(!box.load());
        inject::HookScope hook;
        EXPECT(!hook);
    });
}
