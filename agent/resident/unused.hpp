// When the agent of a job directory ends by itself: the resident one's children do, so that a job leaves nothing behind. It takes more than the directory's
// files to know: one that somebody has emptied has processes that only the agent still sees.
#pragma once

#include <string>
#include <thread>

#include "agent/capture/engine.hpp"
#include "agent/control/file_lock.hpp"
#include "agent/control/job_folder.hpp"

namespace ringside::agent {

/// Whether no process and no task is there any more. Where tasks of `ringside wrap` have been there that is the job's end, whatever is being captured. Else
/// processes come and go as they like: then nothing may be captured or armed either.
bool is_unused(const EngineStatus& engine, const FolderState& folder);

/// Sends this process SIGTERM once its directory is unused; where no task of `ringside wrap` has been there, once it has been so for five seconds.
class Unused {
public:
    /// @param engine  outlives this
    explicit Unused(const Engine& engine);
    Unused(const Unused&) = delete;
    Unused& operator=(const Unused&) = delete;

    /// Has it ended us? Then the directory's election is held from then on, as long as this value lives: nobody comes meanwhile who believes that there
    /// is an agent. Nothing is looked at afterwards.
    FileLock end();

private:
    void run(const std::stop_token& stop);

    const Engine& engine_;
    std::string path_;
    FileLock election_;
    std::jthread thread_;
};

}  // namespace ringside::agent
