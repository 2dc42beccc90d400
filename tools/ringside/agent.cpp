// `ringside agent`: becomes ringside-agent, so that one name on PATH is enough.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <string>
#include <vector>

#include "tools/ringside/command.hpp"
#include "tools/ringside/install_paths.hpp"

namespace ringside::tools {

namespace {

int become_agent(const Words& options) {
    const auto self = own_executable();
    const auto paths = self ? find_install_paths(*self) : Result<InstallPaths>(self.error());
    if (!paths) {
        return fail(paths.error());
    }
    Words words = {paths->agent};
    words.insert(words.end(), options.begin(), options.end());
    std::vector<char*> arguments;
    for (std::string& word : words) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    ::execv(paths->agent.c_str(), arguments.data());
    return fail({ErrorCode::kInternal, "start " + paths->agent + ": " + errno_text(errno)});
}

}  // namespace

Action setup_agent(CLI::App& verb, const Words& rest) {
    verb.footer(
        "All words after `agent` are ringside-agent's own; `ringside agent --help` shows them.");
    return [&rest] { return become_agent(rest); };
}

}  // namespace ringside::tools
