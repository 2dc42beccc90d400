// How processes end, and what is said of it.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "agent/attach/process_life.hpp"
#include "tests/unit/agent_data/fake_job.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;

namespace {

struct Watched {
    FileHandle file;
    std::unique_ptr<ProcessLife> life;
};

/// A child with a segment, and the agent's view of its life.
Watched watch(const std::string& directory, pid_t pid) {
    const std::string path =
        directory + "/" + std::to_string(own_pid_namespace()) + "." + std::to_string(pid) + ".1";
    Watched watched;
    watched.file = FileHandle(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    watched.life = std::make_unique<ProcessLife>(
        schema::SegmentId{own_pid_namespace(), static_cast<std::uint32_t>(pid), 1},
        watched.file.get());
    return watched;
}

SegmentSpec own_spec() {
    return {.pid_namespace = own_pid_namespace(), .pid = static_cast<std::uint32_t>(::getpid())};
}

constexpr auto kReady = schema::SegmentState::kReady;

}  // namespace

TEST_CASE("life: a process that holds its lock lives") {
    TemporaryDirectory directory;
    const Child child([&] { new FakeSegment(directory.path(), own_spec()); });
    const Watched watched = watch(directory.path(), child.pid());
    CHECK_FALSE(watched.life->check(kReady, false));
    CHECK(watched.life->host_pid() == child.pid());
    CHECK(watched.life->watch_descriptor() >= 0);
}

TEST_CASE("life: a stopped process lives, and its state says that it is stopped") {
    TemporaryDirectory directory;
    const Child child([&] { new FakeSegment(directory.path(), own_spec()); });
    const Watched watched = watch(directory.path(), child.pid());
    CHECK(watched.life->state() != 'T');
    ::kill(child.pid(), SIGSTOP);
    CHECK(eventually([&] { return watched.life->state() == 'T'; }));
    CHECK_FALSE(watched.life->check(kReady, false));
}

TEST_CASE(
    "life: a killed process ends killed, with its signal, whether it has been reaped or not") {
    TemporaryDirectory directory;
    Child child([&] { new FakeSegment(directory.path(), own_spec()); });
    const Watched watched = watch(directory.path(), child.pid());
    SUBCASE("not reaped") {
        ::kill(child.pid(), SIGKILL);
    }
    SUBCASE("reaped") {
        child.kill();
    }
    REQUIRE(eventually([&] { return watched.life->check(kReady, false).has_value(); }));
    const Ending ending = *watched.life->check(kReady, false);
    CHECK(ending.fate == Fate::kKilled);
    if (ending.known) CHECK(ending.reason == "signal 9");
}

TEST_CASE("life: an exit without the shim's last word is an exit where the kernel says so") {
    TemporaryDirectory directory;
    int go[2];
    REQUIRE(::pipe(go) == 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
        FakeSegment segment(directory.path(), own_spec());
        char byte = 0;
        static_cast<void>(::read(go[0], &byte, 1) == 1);
        ::_exit(3);
    }
    REQUIRE(eventually([&] {
        return exists(
            directory.sub(std::to_string(own_pid_namespace()) + "." + std::to_string(pid) + ".1"));
    }));
    Watched watched = watch(directory.path(), pid);
    REQUIRE(eventually([&] {
        watched = watch(directory.path(), pid);
        return watched.life->host_pid() == pid;
    }));
    REQUIRE(::write(go[1], "x", 1) == 1);
    REQUIRE(eventually([&] { return watched.life->check(kReady, false).has_value(); }));
    const Ending ending = *watched.life->check(kReady, false);
    CHECK(ending.known);  // it is a zombie: any kernel tells
    CHECK(ending.fate == Fate::kExited);
    CHECK(ending.reason == "exit status 3");
    ::waitpid(pid, nullptr, 0);
    ::close(go[0]);
    ::close(go[1]);
}

TEST_CASE("life: a process that has become another program was replaced") {
    TemporaryDirectory directory;
    const pid_t pid = ::fork();
    if (pid == 0) {
        new FakeSegment(directory.path(), own_spec());
        ::raise(SIGSTOP);
        // The lock's descriptor is close-on-exec, the mapping goes with the program.
        ::execlp("sleep", "sleep", "100", nullptr);
        ::_exit(127);
    }
    int status = 0;
    REQUIRE(::waitpid(pid, &status, WUNTRACED) == pid);
    const Watched watched = watch(directory.path(), pid);
    CHECK_FALSE(watched.life->check(kReady, false));
    ::kill(pid, SIGCONT);
    CHECK(eventually([&] { return watched.life->check(kReady, false).has_value(); }));
    const auto ending = watched.life->check(kReady, false);
    CHECK(ending.value_or(Ending{}).fate == Fate::kReplaced);
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
}

TEST_CASE(
    "life: where only the lock can tell, the segment's last word and a younger segment say how") {
    TemporaryDirectory directory;
    FakeSegment fake(directory.path(), {});
    const FileHandle file(::open(fake.path().c_str(), O_RDWR | O_CLOEXEC));
    const ProcessLife life({kForeignNamespace, 100, 1}, file.get());
    CHECK(life.watch_descriptor() == -1);
    CHECK_FALSE(life.check(kReady, false));
    fake.die(false);
    CHECK(life.check(kReady, false)->fate == Fate::kKilled);
    CHECK(life.check(schema::SegmentState::kClosing, false)->fate == Fate::kExited);
    CHECK(life.check(kReady, true)->fate == Fate::kReplaced);
}
