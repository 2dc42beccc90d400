// Whether a signal came to this process alone, or to all of a launcher's processes: then the command has it already, and would get it twice.
// Slurm does either, by its proctrack plugin. A child that does nothing but tell what signals it gets stands for the command.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <csignal>

#include "tools/ringside/process.hpp"

namespace ringside::tools {

/// @thread main thread
class SignalTwin {
public:
    /// Starts it, before the command. Without one (no process to be had) each signal counts as ours alone.
    explicit SignalTwin(const SignalGuard& signals);
    /// Ends it.
    ~SignalTwin();
    SignalTwin(const SignalTwin&) = delete;
    SignalTwin& operator=(const SignalTwin&) = delete;

    /// Waits a moment for the twin's word.
    bool got_it_too(int signal);
    /// What the twin has got until now is nobody's: the command is only now started.
    void forget();

private:
    using Time = std::chrono::steady_clock::time_point;
    [[noreturn]] static void tell(int signals, int words, int life);
    void read_words();

    pid_t pid_ = -1;
    Descriptor words_;  ///< a byte for each signal that it got
    Descriptor life_;   ///< it ends when this is closed, also by our death
    std::array<Time, NSIG>
        told_{};  ///< when it said so last, of each signal; none: not since it was asked
};

}  // namespace ringside::tools
