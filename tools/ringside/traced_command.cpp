#include "tools/ringside/traced_command.hpp"

#include <cstdlib>

#include "tools/ringside/traceable.hpp"

namespace ringside::tools {

std::string variable(const char* name) {
    const char* const value = ::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

Result<InstallPaths> own_install_paths() {
    const auto self = own_executable();
    auto paths = self ? find_install_paths(*self) : Result<InstallPaths>(self.error());
    if (paths && paths->shim.find_first_of(" :") != std::string::npos) {
        return Error{ErrorCode::kInternal,
                     "preload " + paths->shim +
                         ": the loader splits LD_PRELOAD at spaces and colons; "
                         "install ringside in a path without them"};
    }
    return paths;
}

TracedCommand traced_command(const std::string& program, const Words& words,
                             const std::string& shim, const std::string& root,
                             const std::string& job) {
    ChildOptions child;
    child.program = program;
    child.arguments = words;
    child.environment = {{"RINGSIDE_DIR", root}, {"RINGSIDE_JOB", job}};
    const TraceCheck check = check_traceable(program);
    if (check.answer != Traceability::kYes) {
        say(check.reason);
    }
    if (check.answer != Traceability::kMustNotLoad) {
        const std::string before = variable("LD_PRELOAD");
        child.environment.emplace_back("LD_PRELOAD", before.empty() ? shim : shim + ":" + before);
    }
    return {child, check.why};
}

}  // namespace ringside::tools
