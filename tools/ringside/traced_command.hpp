// The command that `run` and `wrap` trace: found, looked at, and started with the preload.
#pragma once

#include <string>

#include "tools/ringside/command.hpp"
#include "tools/ringside/install_paths.hpp"
#include "tools/ringside/process.hpp"

namespace ringside::tools {

/// @return the variable, or empty
std::string variable(const char* name);

/// As find_install_paths(), and a shim that LD_PRELOAD can name.
/// @errors Internal
Result<InstallPaths> own_install_paths();

struct TracedCommand {
    ChildOptions child;
    std::string
        untraced;  ///< what keeps the preload from it, in a word (TraceCheck::why); empty: nothing
};

/// How to start `words` with the preload and with its job directory told; says what keeps the preload from the program.
/// @param program  as find_program() found it
TracedCommand traced_command(const std::string& program, const Words& words,
                             const std::string& shim, const std::string& root,
                             const std::string& job);

}  // namespace ringside::tools
