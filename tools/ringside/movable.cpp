#include "tools/ringside/movable.hpp"

#include <unistd.h>

#include <cerrno>

#include "schema/frame.hpp"
#include "tools/ringside/command.hpp"
#include "viewer_export/load/dump_reader.hpp"
#include "viewer_export/load/job_reader.hpp"

namespace ringside::tools {

namespace {

namespace load = viewer_export::load;

Error refuse(const std::string& path, const std::string& cause) {
    return {ErrorCode::kRefused, "move " + path + ": " + cause};
}

bool is_of(const Origin& origin, std::uint64_t capture_id) {
    return !origin.capture_id || *origin.capture_id == capture_id;
}

Result<void> check_index(const std::string& path, const Origin& origin) {
    const auto index = load::JobIndexFile::open(path);
    if (!index) {
        return index.error();
    }
    return is_of(origin, index->index().capture_id())
               ? Result<void>()
               : refuse(path, "it is the index of another capture");
}

Result<void> check_dump(const std::string& path, const Origin& origin) {
    const auto dump = load::DumpReader::open(path);
    if (!dump) {
        return dump.error();
    }
    const fbs::FileHeader& header = dump->header();
    const bool of_node = header.node() != nullptr && header.node()->str() == origin.node;
    return of_node && is_of(origin, header.capture_id())
               ? Result<void>()
               : refuse(path, "it is a dump of another node or of another capture");
}

}  // namespace

Result<struct stat> check_movable(const std::string& path, const Origin& origin) {
    struct stat facts {};
    if (::lstat(path.c_str(), &facts) != 0) {
        return Error{ErrorCode::kNothingMatched, "move " + path + ": " + errno_text(errno)};
    }
    if (!S_ISREG(facts.st_mode) || facts.st_uid != ::geteuid()) {
        return refuse(path, "it is no file of this user");
    }
    const std::string dump = schema::kDumpExtension;
    const bool is_index = path.ends_with(schema::kJobExtension);
    if (!is_index && !path.ends_with(dump) && !path.ends_with(dump + ".partial")) {
        return refuse(path, "it is not named as a dump or a job index");
    }
    const auto checked = is_index ? check_index(path, origin) : check_dump(path, origin);
    return checked ? Result<struct stat>(facts) : checked.error();
}

}  // namespace ringside::tools
