// Which job directories beneath a user's root have an agent now. Public: the command and the metrics ask all of them.
#pragma once

#include <string>
#include <vector>

namespace ringside::agent {

/// Those whose lock somebody holds, by name.
std::vector<std::string> held_jobs(const std::string& root);

}  // namespace ringside::agent
