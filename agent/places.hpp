// Where an agent must be able to write: its job directories, its dumps, keys and notes in the home. Under systemd what is not named in the unit is
// read-only, homes in unusual places too.
#pragma once

#include <string>
#include <vector>

#include "agent/options.hpp"

namespace ringside::agent {

/// What can't be written of it, each with the cause and what to do; what is still to be made is where it would be made.
std::vector<std::string> unwritable_places(const AgentOptions& options);

}  // namespace ringside::agent
