// All processes of the job directory: found, followed to their end, removed. The drain thread's own; the engine's lock guards it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/attach/job_directory.hpp"
#include "agent/attach/watch.hpp"
#include "agent/capture/engine.hpp"
#include "agent/capture/tracked_process.hpp"

namespace ringside::agent {

class ProcessTable {
public:
    ProcessTable(JobDirectory directory, Watch watch, const MemoryOptions& memory);

    /// Where somebody has emptied the job directory it is made again: what is followed goes on, what comes is found there.
    void keep_directory();
    /// What has happened to the directory, for `status`; empty: nothing.
    const std::string& notice() const { return notice_; }

    /// Looks for segments that came since the last time.
    /// @return those found
    std::vector<TrackedProcess*> discover();
    /// Looks for processes that ended since the last time.
    /// @param now_ticks  their end, as the agent saw it
    std::vector<TrackedProcess*> find_ended(std::uint64_t now_ticks);
    /// Unlinks and unmaps a dead, drained process's segment.
    void remove(TrackedProcess& process);
    std::uint64_t removed() const { return removed_; }
    /// Forgets the dead ones: no report will speak of them any more.
    void forget_removed();
    /// Of them those that ended before `ticks`. @param take  called with each
    void forget_removed_before(std::uint64_t ticks,
                               const std::function<void(const TrackedProcess&)>& take);
    void set_memory(const MemoryOptions& memory);
    /// Tells the shims how much memory is left, and takes off what was taken back.
    void publish_budget();

    std::vector<std::unique_ptr<TrackedProcess>>& all() { return processes_; }
    const std::vector<std::unique_ptr<TrackedProcess>>& all() const { return processes_; }
    JobDirectory& directory() { return directory_; }
    const JobDirectory& directory() const { return directory_; }
    Watch& watch() { return watch_; }

private:
    std::vector<schema::SegmentId> sorted_ids() const;

    JobDirectory directory_;
    Watch watch_;
    ControlBudget budget_;
    std::string notice_;
    std::optional<std::chrono::steady_clock::time_point> gone_since_;
    std::uint64_t last_taken_ = 0;  ///< as publish_budget() found it
    std::uint64_t last_used_ = 0;
    std::uint64_t removed_ = 0;
    std::vector<std::unique_ptr<TrackedProcess>> processes_;
};

}  // namespace ringside::agent
