// The note that `ringside wrap` leaves in the job directory of the task that it has started (schema/task_note.hpp), so that the agent knows of tasks
// whose processes it can't see.
#pragma once

#include <string>

#include "agent/control/file_lock.hpp"
#include "schema/task_note.hpp"

namespace ringside::tools {

/// Tells as long as it lives that the task runs. Its file stays until the step's end: an ended task is none that has never been there.
class TaskFile {
public:
    /// @param directory  the job directory; -1: nothing is left there
    /// Where it can't be written the agent knows less, and that is all.
    TaskFile(int directory, const std::string& step, const schema::TaskNote& note);
    /// The task has ended.
    void release() { lock_.release(); }

private:
    agent::FileLock lock_;
};

/// Takes those of a step away.
void remove_task_files(int directory, const std::string& step);

}  // namespace ringside::tools
