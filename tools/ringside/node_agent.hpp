// The agent of a job on this node, as the tasks of `ringside wrap` share it. Whoever comes first starts it, under a lock that makes the others
// wait until it records; it belongs to its step, whose last task here ends it and waits until what it holds is written; tasks of
// other steps see its end and start another. Where the user's resident agent lives (agent/resident), both are left to that one.
//
// What lies in the directory for that: agent/control/job_folder.hpp. A step's agent ends by itself when nobody holds step-ID any more.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "agent/control/file_lock.hpp"
#include "tools/ringside/process.hpp"

namespace ringside::tools {

struct NodeAgentOptions {
    std::string program;      ///< ringside-agent
    std::string root;         ///< holds job directories
    std::string job;          ///< the directory beneath it
    std::string step;         ///< this task's
    std::string node;         ///< empty: the agent's default
    std::string member;       ///< the job, as other hosts look for its agents
    std::string output_root;  ///< where dumps may be written; empty: the agent's default
};

/// @thread main thread
class NodeAgent {
public:
    NodeAgent(NodeAgentOptions options, SignalGuard& signals)
        : options_(std::move(options)), signals_(signals) {}
    NodeAgent(const NodeAgent&) = delete;
    NodeAgent& operator=(const NodeAgent&) = delete;

    /// This task takes part; when it returns there is an agent that is ready.
    /// @errors no directory, no agent, or a signal came first (take_signal()): the task goes on without an agent
    Result<void> enter();
    /// The job directory's, once entered; -1: this task takes no part.
    int directory() const { return has_place_ ? directory_.number() : -1; }
    /// Readable when the agent has ended; -1: it can't be told here.
    int ended() const { return ended_.number(); }
    /// Looks whether the agent still lives, and sees to another one where it does not. Does not wait for other tasks; for an agent's start only until
    /// the command ends.
    Result<void> keep();
    /// This task takes no part any more: its step's last one here ends the agent and waits for it, and the last of the job takes the job directory away.
    void leave();
    /// A signal that came while we waited for an agent: the command's, as soon as there is one.
    std::optional<int> take_signal() { return std::exchange(signal_, std::nullopt); }

private:
    enum class Wait {
        kUntilSignal,  ///< before the command is started
        kBounded,      ///< after its end
        kNot           ///< while it runs
    };
    Result<void> open_directory();
    bool elect(Wait wait);
    Result<void> take_place();
    bool has_agent() const;
    Result<void> see_to_agent(bool command_runs);
    bool is_residents(bool command_runs);
    Result<void> start(bool command_runs);
    Result<void> write_owner(pid_t agent) const;
    void follow();
    void reap();
    void end_agent();
    bool is_of_our_step() const;
    bool has_leftovers() const;
    void recover() const;
    bool directory_is_named() const;

    NodeAgentOptions options_;
    SignalGuard& signals_;
    std::string path_;
    Descriptor directory_;
    agent::FileLock election_;
    agent::FileLock step_;
    agent::FileLock agent_;  ///< never taken here
    Descriptor ended_;
    pid_t child_ = -1;  ///< an agent that this task has started
    bool has_place_ = false;
    std::optional<int> signal_;
};

}  // namespace ringside::tools
