#include "agent/metrics/metrics_keeper.hpp"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>

#include <cerrno>

namespace ringside::agent {

schema::Result<void> MetricsKeeper::move_to(const std::string& address) {
    if (address == address_) return {};
    pid_t fresh = 0;
    if (!address.empty()) {
        auto started = start_(address);
        if (!started) return started.error();
        fresh = *started;
    }
    end();
    address_ = address;
    pid_ = fresh;
    return {};
}

void MetricsKeeper::look() {
    int status = 0;
    if (pid_ != 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) {
        spdlog::warn("the metrics' process (pid {}) has ended; another one serves {}", pid_,
                     address_);
        pid_ = 0;
    }
    if (pid_ != 0 || address_.empty() || !pauses_.over()) return;
    pauses_.begin();
    auto started = start_(address_);
    if (started)
        pid_ = *started;
    else
        spdlog::warn(started.error().message);
}

void MetricsKeeper::end() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGTERM);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
}

}  // namespace ringside::agent
