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
    const auto dumps = viewer_export::dumps_among({directory});
    if (!dumps) {
        return dumps.error();
    }
    const auto writer = agent::IndexWriter::create(directory.string());
    if (!writer) {
        return writer.error();
    }
    const auto joined = join_offline(*dumps, true, **writer);
    if (!joined) {
        return joined.error();
    }
    return joined->path;
}

}  // namespace ringside::tools
