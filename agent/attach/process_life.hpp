// Whether a process lives, and how it ended. The judge is the OFD lock that its mapping of the segment holds: it works across pid
// namespaces and can't be mistaken by a reused pid. Where the process is in our namespace a pidfd tells the end at once, and how.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/attach/file_handle.hpp"
#include "agent/capture/engine.hpp"

namespace ringside::agent {

struct Ending {
    Fate fate = Fate::kKilled;
    bool known = false;  ///< the kernel told us; else concluded from what the segment says
    std::string reason;  ///< "signal 9", "exit status 3"; empty: exited 0, or unknown
};

/// The inode of our own pid namespace, as segment names carry it.
std::uint64_t own_pid_namespace();

class ProcessLife {
public:
    /// @param lock_descriptor  of the segment, borrowed: must outlive this
    ProcessLife(const schema::SegmentId& id, int lock_descriptor);

    /// Becomes readable when the process ends; -1: no such descriptor, ask check() now and then.
    int watch_descriptor() const { return pidfd_.get(); }
    /// The process's pid as we see it; 0: unknown.
    int host_pid() const { return host_pid_; }

    /// Its state as /proc tells it: 'R', 'S', 'T' where it is stopped; 0: unknown.
    char state() const;

    /// @param state      of the segment, as last read
    /// @param successor  whether a younger segment of the same pid is there
    /// @return nothing while it lives
    std::optional<Ending> check(schema::SegmentState state, bool successor) const;

private:
    bool lock_is_held() const;
    bool ended() const;
    bool has_program() const;
    std::optional<int> wait_status() const;

    int lock_descriptor_;
    int host_pid_ = 0;
    FileHandle pidfd_;
};

}  // namespace ringside::agent
