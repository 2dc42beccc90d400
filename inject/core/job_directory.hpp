// The job directory and its control page, from the shim's side: made where they are not there yet, checked before they are used.
// Every failure is silent: the job runs as if we were not there.
#pragma once

#include "inject/core/file_descriptor.hpp"
#include "inject/core/fixed_text.hpp"
#include "schema/control_page.hpp"

namespace ringside::inject {

/// Where this process's segment lies; fixed at load, so that a forked child that has changed its environment still finds it.
struct JobPath {
    FixedText<512> root;  ///< absolute
    FixedText<64> job;    ///< one path component
};

/// From RINGSIDE_DIR and RINGSIDE_JOB or SLURM_JOB_ID, else the defaults.
/// @return false where they can't be used: a relative root, a job that is no plain file name
bool read_job_path(JobPath& path);

/// Opens `<root>/<job>`, making both (0700). Neither may be a link, belong to another user, or be writable by others.
FileDescriptor open_job_directory(const JobPath& path);

/// Maps the control page read-only, making it where nobody has: a filled file is linked into place, so that nobody maps half a page.
/// @return null on any error and where the page is of another layout
const schema::ControlPage* map_control_page(const FileDescriptor& directory);

/// Maps the page of what the node's processes have taken.
/// @return null where no agent has made it
schema::BudgetPage* map_budget_page(const FileDescriptor& directory);

}  // namespace ringside::inject
