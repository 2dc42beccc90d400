// Keeps a resident agent's metrics served: at another address where that changes, by another process where the one that did has died.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>

#include "agent/control/pauses.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

/// @thread main thread, and no other in this process: it forks
class MetricsKeeper {
public:
    /// @return the process that serves them there
    using Start = std::function<schema::Result<pid_t>(const std::string& address)>;

    explicit MetricsKeeper(Start start) : start_(std::move(start)) {}

    /// Serves them there and no longer where it did; what is there is served until the new one is.
    /// @param address  empty: nowhere
    /// @errors as start_metrics; all is as it was, and asked again it tries again
    schema::Result<void> move_to(const std::string& address);
    /// Has another process serve where the last one has ended: at once, then after longer and longer pauses.
    void look();

    const std::string& address() const { return address_; }
    pid_t pid() const { return pid_; }

private:
    void end();

    Start start_;
    std::string address_;
    pid_t pid_ = 0;  ///< 0: none serves
    Pauses pauses_;
};

}  // namespace ringside::agent
