// Can a preloaded library reach this program at all? Looks at the file before it is started, since a preload that the dynamic loader
// ignores (static, setuid), or beside a C library that it does not know (musl), records nothing without a word, and one that another library
// suffers only behind itself (AddressSanitizer) would keep the program from starting.
#pragma once

#include <string>

#include "schema/result.hpp"

namespace ringside::tools {

enum class Traceability {
    kYes,
    kUnreached,  ///< the preload is ignored, or does nothing: the program runs, nothing of it is recorded, its children may be
    kMustNotLoad  ///< the preload would keep the program from starting: it is run without
};

struct TraceCheck {
    Traceability answer = Traceability::kYes;
    std::string reason;  ///< empty for kYes; else "X is statically linked ..."
    std::string why;     ///< likewise, in a word: "static", "setuid"
};

/// Looks at the program and, if it is a script, at its interpreter (also `#!/usr/bin/env X`).
/// @param path  absolute or with a slash, as found by find_program()
TraceCheck check_traceable(const std::string& path);

/// What the bytes of an ELF file say; the first page or so is enough.
/// @param bytes  the beginning of the file, from offset 0
TraceCheck check_elf(const std::string& name, const std::string& bytes);

struct FoundProgram {
    std::string path;
    int exit_code = 0;  ///< 0, or 126 / 127 as a shell says it, with the reason
    std::string reason;
};

/// Looks a command up as execvp would.
/// @param search_path  the value of PATH
FoundProgram find_program(const std::string& command, const std::string& search_path);

}  // namespace ringside::tools
