// Finds the agent and the shim beside this executable.
#include "tools/ringside/install_paths.hpp"

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "config.hpp"

namespace ringside::tools {

namespace fs = std::filesystem;
using schema::Error;
using schema::ErrorCode;
using schema::Result;

namespace {

Result<std::string> first_that_exists(const std::string& what,
                                      const std::vector<fs::path>& places) {
    std::string tried;
    for (const fs::path& place : places) {
        std::error_code error;
        const fs::path found = fs::canonical(place, error);
        if (!error && fs::is_regular_file(found, error)) {
            return found.string();
        }
        tried += (tried.empty() ? "" : ", ") + place.lexically_normal().string();
    }
    return Error{ErrorCode::kInternal, "find " + what + ": it is at none of " + tried +
                                           "; build it (ninja) or install ringside as a whole"};
}

}  // namespace

Result<InstallPaths> find_install_paths(const std::string& executable) {
    const fs::path here = fs::path(executable).parent_path();
    const fs::path library = fs::path(kConfiguredLibraryDir).lexically_relative(kConfiguredBinDir);
    auto agent = first_that_exists("ringside-agent",
                                   {here / "ringside-agent", here / "../agent/ringside-agent"});
    if (!agent) {
        return agent.error();
    }
    auto shim =
        first_that_exists("the preloaded library", {here / library / "libringside_inject.so",
                                                    here / "../lib/ringside/libringside_inject.so",
                                                    here / "../inject/libringside_inject.so"});
    if (!shim) {
        return shim.error();
    }
    return InstallPaths{*agent, *shim};
}

Result<std::string> own_executable() {
    std::error_code error;
    const fs::path path = fs::read_symlink("/proc/self/exe", error);
    if (error) {
        return Error{ErrorCode::kInternal,
                     "read /proc/self/exe: " + error.message() + "; is /proc mounted?"};
    }
    // In a bundle (tools/bundle) the loader that came with it was started, and was told our name.
    if (path.filename().string().rfind("ld-linux", 0) == 0) {
        return fs::absolute(program_invocation_name, error).string();
    }
    return path.string();
}

}  // namespace ringside::tools
