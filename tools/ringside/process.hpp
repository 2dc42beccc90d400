// Starting processes and waiting for them, with signals taken as data: while a SignalGuard lives, the signals that end a program are
// read from a descriptor, and so every wait of the command is one poll() that neither loses a signal nor needs a handler.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schema/result.hpp"

namespace ringside::tools {

using schema::Result;

/// Owns a descriptor.
class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept;
    ~Descriptor();

    int number() const { return number_; }
    void close();

private:
    int number_ = -1;
};

struct ReceivedSignal {
    int number = 0;
    bool from_terminal =
        false;  ///< the kernel sent it to the whole foreground group: the child has it already
};

/// Which signals a SignalGuard takes.
enum class Taken {
    kEnds,      ///< SIGHUP, SIGINT, SIGQUIT, SIGTERM
    kForOthers  ///< those, and what jobs are sent besides (SIGUSR1 "write a checkpoint"): whoever stands for a command must not die of it
};

/// Blocks signals (those that were not ignored: nohup and background shells stay obeyed) and SIGCHLD while it lives; children get
/// the former mask and SIGCHLD's former disposition back.
/// @thread main thread
class SignalGuard {
public:
    explicit SignalGuard(Taken which = Taken::kEnds);
    ~SignalGuard();
    SignalGuard(const SignalGuard&) = delete;
    SignalGuard& operator=(const SignalGuard&) = delete;

    /// Readable when a signal waits.
    int descriptor() const { return signals_.number(); }
    /// The next signal that waits, without blocking.
    std::optional<ReceivedSignal> take();
    /// Signals as they were before this guard: for a child before exec.
    void restore() const;

private:
    sigset_t former_{};
    struct sigaction former_child_ {};
    Descriptor signals_;
};

struct ChildOptions {
    std::string program;                                           ///< a path; PATH is not searched
    std::vector<std::string> arguments;                            ///< the first one is argv[0]
    std::vector<std::pair<std::string, std::string>> environment;  ///< set beyond ours
    std::vector<std::string> unset;
    bool own_group = false;  ///< Ctrl-C at the terminal does not reach it
    int signal_with_us = 0;  ///< what it gets when this process dies, however; 0: nothing
    /// A session of its own, no stdin, nothing else of what we have open, and every processor that we may use at all.
    bool apart = false;
    int output_descriptor = -1;     ///< becomes its stdout and stderr
    int inherited_descriptor = -1;  ///< stays open in the child, besides stdin, stdout and stderr
};

/// Starts a program with the signal mask that was there before `signals`.
/// @errors Internal: fork or exec failed; `exec_errno` says whether it was exec
Result<pid_t> start_process(const ChildOptions& options, const SignalGuard& signals,
                            int* exec_errno = nullptr);

struct Readiness {
    bool ready = false;         ///< it has written its byte; else it has ended, or a signal came
    std::optional<int> signal;  ///< not SIGCHLD
};

/// Waits until a child writes a byte into the pipe that it was given, or closes it by its end.
/// @param patience    how long at most; then it is not ready
/// @param ends_early  where any other child has ended, too
Readiness await_ready(int descriptor, SignalGuard& signals,
                      std::chrono::milliseconds patience = std::chrono::hours(1),
                      bool ends_early = false);

/// How a process ended: 0..255, or 128+N when it died of signal N.
int status_of(int wait_status);

/// Waits until `pid` has ended, handing signals that come meanwhile to it.
/// @return its wait status
int wait_forwarding(pid_t pid, SignalGuard& signals);

/// Waits at most `patience` for a child.
/// @return its wait status, or nothing when it still runs
std::optional<int> wait_at_most(pid_t pid, SignalGuard& signals,
                                std::chrono::milliseconds patience);

}  // namespace ringside::tools
