// The job as one trace a rank, as tools that read Kineto's files want them: which processes each shows, and its name.
#pragma once

#include <string>
#include <vector>

#include "viewer_export/model/job.hpp"

namespace ringside::viewer_export {

struct RankFile {
    std::string
        name;  ///< `<host>_<pid>.<n>.pt.trace.json`; n: when the job's first event began, ns
    std::vector<bool> processes;  ///< for TraceOptions
};

/// The processes of one rank on one node are one file, named by the one that has most events; one without a rank has its own. Processes in which
/// nothing was recorded are in none.
std::vector<RankFile> rank_files(const model::Job& job);

}  // namespace ringside::viewer_export
