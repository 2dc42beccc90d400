// Whether a file of this host may be moved because an agent named it. What agents say is theirs to invent, and another host may have a file of the
// same path: so a file says itself what it is.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>

#include "schema/result.hpp"

namespace ringside::tools {

using schema::Result;

/// What the file must be of.
struct Origin {
    std::optional<std::uint64_t>
        capture_id;  ///< none: captures from the start that a `--finish` ended, which have one a node
    std::string node;  ///< of a dump
};

/// A regular file of this user's, no link, named as a dump (also as one that could not be finished) or a job index, whose header is of `origin`.
/// @return what lstat says of it
/// @errors Refused: it is not; NothingMatched: there is no such file
Result<struct stat> check_movable(const std::string& path, const Origin& origin);

}  // namespace ringside::tools
