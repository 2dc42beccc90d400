// Children: their status, their signals, their environment.
#include "tools/ringside/process.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string>

namespace {

using ringside::tools::ChildOptions;
using ringside::tools::Descriptor;
using ringside::tools::SignalGuard;
using ringside::tools::start_process;
using ringside::tools::status_of;
using ringside::tools::wait_at_most;
using ringside::tools::wait_forwarding;

ChildOptions shell(const std::string& script) {
    ChildOptions options;
    options.program = "/bin/sh";
    options.arguments = {"sh", "-c", script};
    return options;
}

int run(const ChildOptions& options) {
    SignalGuard signals;
    const auto child = start_process(options, signals);
    REQUIRE(child);
    return status_of(wait_forwarding(*child, signals));
}

TEST_CASE("process: its status is its own, a signal is 128 and its number") {
    CHECK(run(shell("exit 0")) == 0);
    CHECK(run(shell("exit 37")) == 37);
    CHECK(run(shell("kill -KILL $$")) == 128 + SIGKILL);
    CHECK(run(shell("kill -TERM $$")) == 128 + SIGTERM);
}

TEST_CASE("process: set and unset variables arrive") {
    ChildOptions options = shell("test \"$RINGSIDE_UNIT\" = yes && test -z \"${HOME+x}\"");
    options.environment = {{"RINGSIDE_UNIT", "yes"}};
    options.unset = {"HOME"};
    CHECK(run(options) == 0);
}

TEST_CASE("process: what can't be executed is told with errno, and no child is left") {
    SignalGuard signals;
    ChildOptions options;
    options.program = "/nonexistent/program";
    options.arguments = {"program"};
    int exec_errno = 0;
    CHECK_FALSE(start_process(options, signals, &exec_errno));
    CHECK(exec_errno == ENOENT);
    CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
    CHECK(errno == ECHILD);
}

TEST_CASE("process: a signal sent to us reaches the child, and we live") {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    Descriptor ready(ends[0]);
    Descriptor tell(ends[1]);
    ::fcntl(ready.number(), F_SETFD, FD_CLOEXEC);
    SignalGuard signals;
    const auto child = start_process(shell("trap 'exit 44' TERM; echo >&" +
                                           std::to_string(tell.number()) + "; while :; do :; done"),
                                     signals);
    REQUIRE(child);
    char byte = 0;
    REQUIRE(::read(ready.number(), &byte, 1) == 1);
    ::kill(::getpid(), SIGTERM);
    CHECK(status_of(wait_forwarding(*child, signals)) == 44);
}

TEST_CASE("process: the child has the signal mask that was there before the guard") {
    CHECK(run(shell("! grep -q '^SigBlk:.*[1-9a-f]' /proc/self/status")) == 0);
}

TEST_CASE(
    "process: a wait with a limit gives up on what goes on, and gets the status of what ends") {
    SignalGuard signals;
    const auto child = start_process(shell("while :; do :; done"), signals);
    REQUIRE(child);
    CHECK_FALSE(wait_at_most(*child, signals, std::chrono::milliseconds(1)));
    ::kill(*child, SIGKILL);
    const auto status = wait_at_most(*child, signals, std::chrono::seconds(60));
    REQUIRE(status);
    CHECK(status_of(*status) == 128 + SIGKILL);
}

TEST_CASE("process: an ignored signal stays ignored under the guard") {
    ::signal(SIGHUP, SIG_IGN);
    {
        SignalGuard signals;
        ::kill(::getpid(), SIGHUP);
        CHECK_FALSE(signals.take());
    }
    ::signal(SIGHUP, SIG_DFL);
}

}  // namespace
