// The job index of a dump whose agent did not live to write one. Shared by `recover` and `run`.
#pragma once

#include <string>

#include "schema/result.hpp"

namespace ringside::tools {

/// Joins offline and writes the job index beside a dump, unless one is there.
/// @return its path
/// @errors Input: the dump can't be read; Internal: it can't be written
schema::Result<std::string> index_beside(const std::string& dump);

}  // namespace ringside::tools
