// A file of an agent's, brought into a directory of ours: under a temporary name until it is whole, which a later call goes on with.
#pragma once

#include <functional>
#include <string>

#include "agent/control/fetch.hpp"
#include "schema/result.hpp"
#include "tools/ringside/output_dir.hpp"
#include "tools/ringside/progress.hpp"

namespace ringside::tools {

/// Says in a line what has come, how fast, and over how many connections.
/// @param name   what it is called there
/// @param go_on  asked several times a second
/// @return its path, absolute; its bytes are the agent's, and on disk
/// @errors as agent::fetch_file and OutputDir::finish; Refused: somebody else is fetching it there
Result<std::string> fetch_into(const OutputDir& output, const agent::FetchWish& wish,
                               const std::string& name, Progress& progress,
                               const std::function<bool()>& go_on);

/// "64.0 MiB in 3.2 s, 20.9 MB/s; 10.0 MiB of it were here; connected again 2 times".
std::string fetched_text(const agent::Fetched& fetched, std::int64_t took_ns);

}  // namespace ringside::tools
