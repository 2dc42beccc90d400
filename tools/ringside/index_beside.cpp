#include "tools/ringside/index_beside.hpp"

#include <filesystem>

#include "agent/correlate/job_writer.hpp"
#include "schema/frame.hpp"
#include "tools/ringside/offline_join.hpp"
#include "viewer_export/load/job_loader.hpp"

namespace ringside::tools {

namespace fs = std::filesystem;
using schema::Result;

Result<std::string> index_beside(const std::string& dump) {
    const fs::path directory = fs::path(dump).parent_path();
    const fs::path index = directory / schema::kJobFileName;
    std::error_code error;
    if (fs::exists(index, error)) {
        return index.string();
    }
    const auto job = viewer_export::load_job({{directory}, true, {}});
    if (!job) {
        return job.error();
    }
    const auto joined = join_offline(*job, true);
    if (!joined) {
        return joined.error();
    }
    return agent::write_job_index(directory.string(), *joined);
}

}  // namespace ringside::tools
