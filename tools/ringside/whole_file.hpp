// Whether a dump or a job index is whole. `trace` tells nobody of a file before it has looked.
#pragma once

#include <string>

#include "schema/result.hpp"

namespace ringside::tools {

using schema::Result;

/// Reads a file of ours to its end: every frame, its checksum, its content, and that a dump ends with its footer.
/// @errors Input: what is wrong with it, and where; Refused: a newer version's
Result<void> check_whole(const std::string& path);

}  // namespace ringside::tools
