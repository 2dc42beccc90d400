// What a program is linked to, read from its file: before it is started nobody else can tell.
#pragma once

#include <string>
#include <vector>

namespace ringside::tools {

/// The names of its DT_NEEDED entries, in their order; none where the file is no x86-64 ELF file, is static, or can't be read.
std::vector<std::string> needed_libraries(const std::string& path);

}  // namespace ringside::tools
