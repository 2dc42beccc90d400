// The resident agent of a user (`ringside agent --all`): one process that gives each job directory beneath the user's root that nobody holds an agent of
// its own: a child, forked and not a thread, so that one job's agent may die without the others'. It touches nothing in those directories; agents
// make them, hold them, and take them away when they are unused (unused.hpp).
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "agent/attach/file_handle.hpp"
#include "agent/control/file_lock.hpp"
#include "agent/control/job_folder.hpp"
#include "agent/control/pauses.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

struct ResidentJob {
    std::string name;  ///< of its directory
    AgentWish wish;
};

/// @thread main thread, and no other in this process: it forks
class Resident {
public:
    /// Makes the root where it is missing and takes its lock.
    /// @errors Refused: another resident agent holds it (the message names it), or it is not private; Usage: it can't be made
    static schema::Result<Resident> open(const std::string& root, const std::string& node);
    Resident(Resident&&) = default;

    /// Starts agents until `stop_fd` is readable; then all of them have ended in order. They get SIGTERM too where this process dies.
    /// @param reload_fd  SIGHUPs, as a signalfd; -1: none. `reload` is called for them, then they are handed on to its agents
    /// @param tend       called at each turn, once a second at the least: what else this process sees to
    /// @return in a child: whose agent it is to be, once this object is gone; here: nothing
    /// @errors as open(): somebody has removed the root, and another holds the new one
    schema::Result<std::optional<ResidentJob>> serve(int stop_fd, int reload_fd = -1,
                                                     const std::function<void()>& reload = {},
                                                     const std::function<void()>& tend = {});

private:
    struct Job {
        pid_t pid = 0;     ///< of its agent; 0: none of ours
        FileHandle ended;  ///< readable when that has ended
        bool killed =
            false;  ///< by a signal: the next one ends what it has left, though nobody else may be there
        int watch = -1;
        Pauses pauses;
    };

    Resident(std::string root, std::string node) : root_(std::move(root)), node_(std::move(node)) {}
    schema::Result<void> hold();
    void wait(int stop_fd, int reload_fd) const;
    void hand_on(int reload_fd, const std::function<void()>& reload) const;
    void reap();
    std::optional<ResidentJob> look();
    bool needs_agent(const std::string& name, Job& job, int folder);
    void watch(const std::string& name, Job& job, bool on) const;
    static bool start(Job& job);
    void end();

    std::string root_;
    std::string node_;
    FileHandle folder_;  ///< the root
    FileLock lock_;
    FileHandle notify_;
    std::map<std::string, Job> jobs_;
};

/// Whether an agent of the resident one's may have a directory of that name: it is none that `ringside run` has made for itself.
bool is_residents_job(const std::string& name);

}  // namespace ringside::agent
