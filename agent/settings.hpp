// What of the options may also stand in a configuration file (TOML) or in the environment: what is a node's, or a user's, and not one job's. In rising
// order: file, environment, command line.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "schema/result.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own
class App;
}

namespace ringside::agent {

/// Where each setting's value comes from, in their order: "default", "FILE:LINE", a variable's name, "command line".
struct SettingOrigins {
    std::string file;  ///< that was read; empty: none
    std::vector<std::pair<std::string, std::string>> of;

    /// @return of that setting
    const std::string& at(const std::string& name) const;
};

/// The file that is read where none is named: the user's `ringside/agent.toml` in XDG_CONFIG_HOME or ~/.config, else /etc/ringside/agent.toml; empty:
/// none is there.
std::string default_config();

/// Gives each setting that the command line has not given its value from the environment, else from the file.
/// @param app   parsed, with an option `--NAME` for each setting
/// @param file  TOML; empty: none
/// @errors Usage: the file can't be read, a key that is no setting, a value of another type or out of its bounds; it names file and line
schema::Result<SettingOrigins> fill_settings(CLI::App& app, const std::string& file);

}  // namespace ringside::agent
