// The lease of a capture that a leader elsewhere has asked for: where that one is silent for long, the capture ends here. It is the capture's, not a
// connection's: a leader whose connection was lost comes by another one, and its pings name the capture. The server's loop tells it what it hears.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/control/link.hpp"
#include "agent/control/messages.hpp"

namespace ringside::agent {

/// @thread one: the server's loop
class Lease {
public:
    void set_length(Milliseconds length) { length_ = length; }
    Milliseconds length() const { return length_; }

    /// Whoever has this identity leads this capture from now on.
    void give(std::string identity, std::uint64_t capture_id, SteadyTime now);
    /// Any message of anybody: one that names the capture, or comes by the connection that did so last, renews it.
    void heard(const std::string& identity, fbs::MessageT& message, SteadyTime now);
    /// Called at least once a second, and once a lease.
    /// @return the capture that is to end now; told again a moment later, until over() or somebody is heard
    std::optional<std::uint64_t> run_out(SteadyTime now);
    /// Its capture ends, or has ended.
    void over() { capture_id_ = 0; }

private:
    Milliseconds length_{0};
    std::string identity_;
    std::uint64_t capture_id_ = 0;  // 0: there is none
    SteadyTime heard_;
    SteadyTime looked_;
    SteadyTime told_;
};

}  // namespace ringside::agent
