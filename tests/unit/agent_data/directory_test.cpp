// Job directories: who may hold one, what is found in them, what is removed.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "agent/attach/job_directory.hpp"
#include "agent/attach/process_life.hpp"
#include "tests/unit/agent_data/fake_job.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;

TEST_CASE("directory: root and job are made for this user alone") {
    TemporaryDirectory top;
    const auto directory = JobDirectory::open(top.sub("root"), "job", "node");
    REQUIRE(directory);
    struct stat status {};
    REQUIRE(::stat(top.sub("root/job").c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0700);
    REQUIRE(::stat(top.sub("root/job/control").c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);
    CHECK(status.st_size == 4096);
}

TEST_CASE(
    "directory: a second agent is refused, and told who holds it; when the first is gone it is let "
    "in") {
    TemporaryDirectory top;
    {
        const auto first = JobDirectory::open(top.path(), "job", "alpha");
        REQUIRE(first);
        const auto second = JobDirectory::open(top.path(), "job", "beta");
        REQUIRE_FALSE(second);
        CHECK(second.error().code == schema::ErrorCode::kRefused);
        CHECK(second.error().message.find("pid " + std::to_string(::getpid()) + " of node alpha") !=
              std::string::npos);
    }
    CHECK(JobDirectory::open(top.path(), "job", "beta"));
}

TEST_CASE("directory: a root whose parent is missing is an error that says what to do") {
    const auto directory = JobDirectory::open("/nonexistent/root", "job", "node");
    REQUIRE_FALSE(directory);
    CHECK(directory.error().code == schema::ErrorCode::kUsage);
    CHECK(directory.error().message.find("--dir") != std::string::npos);
}

TEST_CASE("directory: a link, a file or an open directory in its place is refused") {
    TemporaryDirectory top;
    SUBCASE("link") {
        ::mkdir(top.sub("else").c_str(), 0700);
        REQUIRE(::symlink(top.sub("else").c_str(), top.sub("job").c_str()) == 0);
    }
    SUBCASE("file") {
        ::close(::open(top.sub("job").c_str(), O_CREAT | O_WRONLY, 0600));
    }
    SUBCASE("others may write") {
        ::mkdir(top.sub("job").c_str(), 0700);
        ::chmod(top.sub("job").c_str(), 0777);
    }
    const auto directory = JobDirectory::open(top.path(), "job", "node");
    REQUIRE_FALSE(directory);
    CHECK(directory.error().code == schema::ErrorCode::kRefused);
}

TEST_CASE("directory: a job's name that leaves the root is refused") {
    TemporaryDirectory top;
    for (const char* job : {"", "..", ".", "a/b", "../x"})
        CHECK_FALSE(JobDirectory::open(top.path(), job, "node"));
}

TEST_CASE(
    "directory: a link on the lock's or the control page's name is refused, and what it points to "
    "stays") {
    TemporaryDirectory top;
    ::mkdir(top.sub("job").c_str(), 0700);
    ::close(::open(top.sub("victim").c_str(), O_CREAT | O_WRONLY, 0600));
    const char* name = "";
    SUBCASE("lock") {
        name = "job/lock";
    }
    SUBCASE("control") {
        name = "job/control";
    }
    REQUIRE(::symlink(top.sub("victim").c_str(), top.sub(name).c_str()) == 0);
    CHECK_FALSE(JobDirectory::open(top.path(), "job", "node"));
    struct stat status {};
    REQUIRE(::stat(top.sub("victim").c_str(), &status) == 0);
    CHECK(status.st_size == 0);
}

TEST_CASE(
    "directory: a segment that its process never finished goes once that is gone, not while it may "
    "live") {
    TemporaryDirectory top;
    auto directory = JobDirectory::open(top.path(), "job", "node");
    REQUIRE(directory);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    REQUIRE(::waitpid(child, nullptr, 0) == child);
    const auto made = [&](std::uint64_t pid_namespace, pid_t pid) {
        std::string path =
            top.sub("job/" + segment_name({pid_namespace, static_cast<std::uint32_t>(pid), 1}));
        ::close(::open(path.c_str(), O_CREAT | O_WRONLY, 0600));
        return path;
    };
    const std::string gone = made(own_pid_namespace(), child);
    const std::string lives = made(own_pid_namespace(), ::getpid());
    const std::string elsewhere = made(own_pid_namespace() + 1, child);
    CHECK(directory->scan({}).empty());
    CHECK_FALSE(std::filesystem::exists(gone));
    CHECK(std::filesystem::exists(lives));
    CHECK(std::filesystem::exists(elsewhere));
}

TEST_CASE("control page: one of another layout is refused with what to do") {
    TemporaryDirectory top;
    static_cast<void>(JobDirectory::open(top.path(), "job", "node"));
    const FileHandle file(::open(top.sub("job/control").c_str(), O_RDWR));
    const std::uint32_t layout = 9;
    REQUIRE(::pwrite(file.get(), &layout, sizeof layout, 8) == sizeof layout);
    const auto directory = JobDirectory::open(top.path(), "job", "node");
    REQUIRE_FALSE(directory);
    CHECK(directory.error().message.find("layout 9, this agent writes 1") != std::string::npos);
}

TEST_CASE("control page: what a dead agent left on is turned off, with a new generation") {
    TemporaryDirectory top;
    std::uint32_t left = 0;
    {
        auto first = JobDirectory::open(top.path(), "job", "node");
        REQUIRE(first);
        left = first->control().turn_on({});
    }
    CHECK((left & 1) == 1);
    const auto second = JobDirectory::open(top.path(), "job", "node");
    REQUIRE(second);
    const FakeControl control(top.sub("job"));
    CHECK_FALSE(schema::CaptureWord::unpack(control.word()).on);
    CHECK(control.word() > left);
}

TEST_CASE(
    "directory: what is removed is made again; the page of before says what the new one says") {
    TemporaryDirectory top;
    auto directory = JobDirectory::open(top.sub("root"), "job", "node");
    REQUIRE(directory);
    CHECK(directory->whole());
    const FakeControl before(top.sub("root/job"));
    const std::uint32_t on = directory->control().turn_on({.options = 3, .start_ticks = 77});
    REQUIRE(std::filesystem::remove_all(top.sub("root")) > 0);
    CHECK_FALSE(directory->whole());
    REQUIRE(directory->restore());
    CHECK(directory->whole());
    const FakeControl after(top.sub("root/job"));
    CHECK(after.word() == on);
    CHECK(after.page().options.load() == 3);
    CHECK(after.page().start_ticks.load() == 77);
    const std::uint32_t off = directory->control().turn_off();
    CHECK(before.word() == off);
    CHECK(after.word() == off);
    CHECK_FALSE(JobDirectory::open(top.sub("root"), "job", "another"));
}

TEST_CASE("directory: where another agent holds what was made meanwhile it stays another's") {
    TemporaryDirectory top;
    auto first = JobDirectory::open(top.sub("root"), "job", "first");
    REQUIRE(first);
    REQUIRE(std::filesystem::remove_all(top.sub("root")) > 0);
    const auto second = JobDirectory::open(top.sub("root"), "job", "second");
    REQUIRE(second);
    const auto restored = first->restore();
    REQUIRE_FALSE(restored);
    CHECK(restored.error().message.find("of node second") != std::string::npos);
    CHECK_FALSE(first->whole());
    CHECK(second->whole());
}

TEST_CASE(
    "scan: finds segments that were there before, passes over what is none, refuses with a "
    "reason") {
    TemporaryDirectory top;
    auto directory = JobDirectory::open(top.path(), "job", "node");
    REQUIRE(directory);
    const std::string path = top.sub("job");
    const FakeSegment one(path, {.pid = 1}), two(path, {.pid = 2});
    FakeSegment other(path, {.pid = 3});
    other.header()->layout = 7;
    ::close(::open((path + "/agent.sock").c_str(), O_CREAT | O_WRONLY, 0600));
    ::close(::open((path + "/7.5").c_str(), O_CREAT | O_WRONLY, 0600));
    const auto found = directory->scan({});
    CHECK(found.size() == 2);
    REQUIRE(directory->refused().size() == 1);
    CHECK(directory->refused().begin()->id.pid == 3);
    CHECK(directory->scan({found[0]->id(), found[1]->id()}).empty());
    CHECK(directory->refused().size() == 1);
}

TEST_CASE("remove: takes the file it was given, not another that has its name") {
    TemporaryDirectory top;
    auto directory = JobDirectory::open(top.path(), "job", "node");
    REQUIRE(directory);
    auto one = std::make_unique<FakeSegment>(top.sub("job"), SegmentSpec{});
    const auto found = directory->scan({});
    REQUIRE(found.size() == 1);
    ::unlink(one->path().c_str());
    const FakeSegment same_name(top.sub("job"), {});
    directory->remove(*found[0]);
    CHECK(exists(same_name.path()));
}
