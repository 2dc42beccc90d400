// Where the agent and the shim lie, seen from this executable: in the build tree (build/tools/ringside), after `meson install`
// and in a bundle alike, so that a moved prefix goes on working.
#pragma once

#include <string>

#include "schema/result.hpp"

namespace ringside::tools {

struct InstallPaths {
    std::string agent;
    std::string shim;
};

/// @param executable  absolute path of the `ringside` that runs
/// @errors Internal: one of the two is not there; the message names where it was looked for
schema::Result<InstallPaths> find_install_paths(const std::string& executable);

/// Absolute path of this executable, from /proc; in a bundle that of its bin/ringside.
schema::Result<std::string> own_executable();

}  // namespace ringside::tools
