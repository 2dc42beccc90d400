// Where a dump may be written: beneath the agent's output root and nowhere else, whatever a request calls it.
#pragma once

#include <string>

#include "agent/attach/file_handle.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

struct OutputFolder {
    FileHandle directory;
    std::string path;  ///< absolute

    /// Makes and opens `<root>/<name>` (0700), the root too where it is missing, following no link beneath the root.
    /// @param name  relative: components joined by '/', none of them ".."
    /// @errors Refused: the name leaves the root, or a link or another's directory is in the way; Usage: can't be made
    static schema::Result<OutputFolder> open(const std::string& root, const std::string& name);
};

}  // namespace ringside::agent
