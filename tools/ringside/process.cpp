// fork, exec, signalfd, poll.
#include "tools/ringside/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tools/ringside/command.hpp"

namespace ringside::tools {

namespace {

using Clock = std::chrono::steady_clock;

/// In the child, between fork and exec. Reports exec's errno through `report`, which closes itself on success.
[[noreturn]] void become(const ChildOptions& options, const SignalGuard& signals, pid_t parent,
                         int report) {
    if (options.own_group) {
        ::setpgid(0, 0);
    }
    if (options.apart) {
        ::setsid();
        const int nothing = ::open("/dev/null", O_RDONLY);
        ::dup2(nothing, STDIN_FILENO);
        // A launcher's: whoever waits for their other ends must not wait for us. Where the kernel is older, those that are usual.
        if (::close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC) != 0) {
            constexpr int kUsual = 1024;
            for (int number = STDERR_FILENO + 1; number < kUsual; ++number) {
                ::fcntl(number, F_SETFD, FD_CLOEXEC);
            }
        }
        // A launcher binds a task to a few processors: these are the task's. The kernel leaves out what the control group forbids.
        cpu_set_t all;
        std::memset(&all, 0xff, sizeof all);
        ::sched_setaffinity(0, sizeof all, &all);
    }
    if (options.output_descriptor >= 0) {
        ::dup2(options.output_descriptor, STDOUT_FILENO);
        ::dup2(options.output_descriptor, STDERR_FILENO);
    }
    if (options.signal_with_us != 0) {
        ::prctl(PR_SET_PDEATHSIG, options.signal_with_us);
        if (::getppid() != parent) {
            ::_exit(kExitSignal + options.signal_with_us);  // the parent died before prctl
        }
    }
    for (const auto& [name, value] : options.environment) {
        ::setenv(name.c_str(), value.c_str(), 1);
    }
    for (const std::string& name : options.unset) {
        ::unsetenv(name.c_str());
    }
    if (options.inherited_descriptor >= 0) {
        ::fcntl(options.inherited_descriptor, F_SETFD, 0);
    }
    std::vector<char*> arguments;
    for (const std::string& argument : options.arguments) {
        arguments.push_back(const_cast<char*>(argument.c_str()));
    }
    arguments.push_back(nullptr);
    signals.restore();
    ::execv(options.program.c_str(), arguments.data());
    const int error = errno;
    [[maybe_unused]] const ssize_t told = ::write(report, &error, sizeof(error));
    ::_exit(kExitNotFound);
}

std::optional<int> try_wait(pid_t pid) {
    int status = 0;
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid) {
        return status;
    }
    if (ended < 0 && errno == ECHILD) {
        return 0;  // somebody else has reaped it: nothing to tell
    }
    return std::nullopt;
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
    if (this != &other) {
        close();
        number_ = std::exchange(other.number_, -1);
    }
    return *this;
}

Descriptor::~Descriptor() {
    close();
}

void Descriptor::close() {
    if (number_ >= 0) {
        ::close(std::exchange(number_, -1));
    }
}

SignalGuard::SignalGuard(Taken which) {
    sigset_t taken;
    ::sigemptyset(&taken);
    ::sigaddset(&taken, SIGCHLD);
    std::vector<int> numbers = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    if (which == Taken::kForOthers) {
        numbers.insert(numbers.end(), {SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU, SIGXFSZ, SIGIO, SIGPWR,
                                       SIGPROF, SIGVTALRM, SIGABRT, SIGTRAP, SIGSYS});
        for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) {
            numbers.push_back(signal);
        }
    }
    for (const int signal : numbers) {
        struct sigaction action {};
        ::sigaction(signal, nullptr, &action);
        if (action.sa_handler != SIG_IGN) {
            ::sigaddset(&taken, signal);
        }
    }
    // An inherited "ignore" of SIGCHLD would let the kernel reap children before their status is read.
    struct sigaction normal {};
    normal.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &normal, &former_child_);
    ::sigprocmask(SIG_BLOCK, &taken, &former_);
    signals_ = Descriptor(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
}

SignalGuard::~SignalGuard() {
    while (take()) {
        // A signal that was dealt with must not kill us once it is let through.
    }
    restore();
}

void SignalGuard::restore() const {
    ::sigaction(SIGCHLD, &former_child_, nullptr);
    ::sigprocmask(SIG_SETMASK, &former_, nullptr);
}

std::optional<ReceivedSignal> SignalGuard::take() {
    signalfd_siginfo info{};
    if (::read(signals_.number(), &info, sizeof(info)) != sizeof(info)) {
        return std::nullopt;
    }
    return ReceivedSignal{static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL};
}

Result<pid_t> start_process(const ChildOptions& options, const SignalGuard& signals,
                            int* exec_errno) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return Error{ErrorCode::kInternal,
                     "start " + options.program + ": pipe: " + errno_text(errno)};
    }
    Descriptor read_end(ends[0]);
    Descriptor write_end(ends[1]);
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) {
        return Error{ErrorCode::kInternal,
                     "start " + options.program + ": fork: " + errno_text(errno)};
    }
    if (child == 0) {
        become(options, signals, parent, write_end.number());
    }
    write_end.close();
    int error = 0;
    ssize_t got = 0;
    do {
        got = ::read(read_end.number(), &error, sizeof(error));
    } while (got < 0 && errno == EINTR);
    if (got != sizeof(error)) {
        return child;
    }
    ::waitpid(child, nullptr, 0);
    if (exec_errno != nullptr) {
        *exec_errno = error;
    }
    return Error{ErrorCode::kInternal, "start " + options.program + ": " + errno_text(error)};
}

Readiness await_ready(int descriptor, SignalGuard& signals, std::chrono::milliseconds patience,
                      bool ends_early) {
    const auto deadline = Clock::now() + patience;
    while (true) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        if (left.count() <= 0) {
            return {};
        }
        std::array<pollfd, 2> waiting = {pollfd{descriptor, POLLIN, 0},
                                         pollfd{signals.descriptor(), POLLIN, 0}};
        ::poll(waiting.data(), waiting.size(), static_cast<int>(left.count()));
        if (waiting[0].revents != 0) {
            char byte = 0;
            return {::read(descriptor, &byte, 1) == 1, std::nullopt};
        }
        while (const auto signal = signals.take()) {
            if (signal->number != SIGCHLD) {
                return {false, signal->number};
            }
            if (ends_early) {
                return {};
            }
        }
    }
}

int status_of(int wait_status) {
    return WIFSIGNALED(wait_status) ? kExitSignal + WTERMSIG(wait_status)
                                    : WEXITSTATUS(wait_status);
}

int wait_forwarding(pid_t pid, SignalGuard& signals) {
    while (true) {
        if (const auto status = try_wait(pid)) {
            return *status;
        }
        pollfd waiting{signals.descriptor(), POLLIN, 0};
        ::poll(&waiting, 1, -1);
        while (const auto signal = signals.take()) {
            if (signal->number != SIGCHLD && !signal->from_terminal) {
                ::kill(pid, signal->number);
            }
        }
    }
}

std::optional<int> wait_at_most(pid_t pid, SignalGuard& signals,
                                std::chrono::milliseconds patience) {
    const auto deadline = Clock::now() + patience;
    while (true) {
        if (const auto status = try_wait(pid)) {
            return status;
        }
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        if (left.count() <= 0) {
            return std::nullopt;
        }
        pollfd waiting{signals.descriptor(), POLLIN, 0};
        ::poll(&waiting, 1, static_cast<int>(left.count()) + 1);
        while (signals.take()) {
            // SIGCHLD is what this waits for; a further Ctrl-C must not cut short the end of the agent.
        }
    }
}

}  // namespace ringside::tools
