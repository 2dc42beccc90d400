// The dumps and the job index of a trace, brought into one directory: moved where it is sure that what lies here is what the agent means, else fetched.
#pragma once

#include <functional>
#include <string>

#include "schema/control_generated.h"
#include "schema/result.hpp"
#include "tools/ringside/agents.hpp"
#include "tools/ringside/output_dir.hpp"

namespace ringside::tools {

struct BringOptions {
    const AgentChoice& choice;  ///< who was asked, as the user said it
    const Agents& agents;
    std::string name_pattern;
    bool fetch = false;                  ///< also what can be seen from here
    bool captures_differ = false;        ///< --finish: each node ended one of its own
    const std::function<bool()>& go_on;  ///< asked while a file is fetched
};

/// Each path of the reply is then where the file lies; empty: it is not here, or not whole, and that has been said, with what to do.
/// @return whether all that there were are here, and whole
/// @errors as OutputDir::take
Result<bool> bring_together(fbs::TraceReplyT& reply, const OutputDir& output,
                            const BringOptions& options);

/// `ringside fetch --hosts E PATH -o DIR`: what brings a file that is missing.
/// @param name  what it is to be called there, where that is not its own
std::string fetch_command(const AgentChoice& choice, const std::string& endpoint,
                          const std::string& path, const std::string& directory,
                          const std::string& name);

}  // namespace ringside::tools
