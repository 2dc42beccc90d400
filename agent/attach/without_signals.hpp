// Threads that are made while this lives get no signals: those are for the thread that has asked for them. A fault stays its own thread's.
#pragma once

#include <csignal>

namespace ringside::agent {

/// @thread any; ends on the thread that began it
class WithoutSignals {
public:
    WithoutSignals() {
        sigset_t all;
        sigfillset(&all);
        sigdelset(&all, SIGBUS);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~WithoutSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    WithoutSignals(const WithoutSignals&) = delete;
    WithoutSignals& operator=(const WithoutSignals&) = delete;

private:
    sigset_t before_{};
};

}  // namespace ringside::agent
