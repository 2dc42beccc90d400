// From what the user names (a directory, dumps, an index) to a loaded job, joined: by its index, or offline by the same join where
// there is none. Shared by `table`, `steps`, `ranges`, `export` and `run`.
#pragma once

#include <string>
#include <vector>

#include "schema/result.hpp"
#include "tools/ringside/progress.hpp"
#include "viewer_export/model/job.hpp"
#include "viewer_export/model/progress.hpp"

namespace ringside::tools {

struct JobInput {
    std::vector<std::string> paths;
    bool corrected = true;  ///< false: each node's own clock (--no-clock-correction)
};

/// Says on stderr that it joined offline when it did, and where damaged inputs end.
/// @errors Input: nothing there, no dump, from a newer version, no whole chunk; Usage: no such file or directory
schema::Result<viewer_export::model::Job> load_input(const JobInput& input, Progress& progress);

/// Shows what the library tells. @param progress  borrowed
viewer_export::model::Tell shown_by(Progress& progress);

/// @return 0, or the exit code for damaged inputs where load_input() found any
int damage_status(const viewer_export::model::Job& job);

}  // namespace ringside::tools
