// Starts, awaits, ends and cleans up after an agent.
#include "tools/ringside/own_agent.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

#include "agent/control/endpoint.hpp"
#include "tools/ringside/command.hpp"

namespace ringside::tools {

namespace fs = std::filesystem;

namespace {

/// An agent that was told to end writes what it still holds; beyond this it hangs.
constexpr std::chrono::seconds kPatience{10};
/// How long one that does not answer may take to be gone, in ms.
constexpr int kDying = 2000;

ChildOptions agent_command(const OwnAgentOptions& options, const std::string& endpoint, int ready) {
    ChildOptions child;
    child.program = options.program;
    child.arguments = {options.program,
                       "--config",  // none: the user's own agent's is not for it
                       "",
                       "--dir",
                       options.root,
                       "--job",
                       options.job,
                       "--endpoint",
                       endpoint,
                       "--output",
                       options.output_root,
                       "--name",
                       options.dump_name,
                       "--capture-from-start",
                       "--audit",  // its log is the traced command's stderr
                       "file",
                       "--ready-fd",
                       std::to_string(ready)};
    if (!options.node.empty()) {
        child.arguments.insert(child.arguments.end(), {"--node", options.node});
    }
    if (options.max_bytes != 0) {
        child.arguments.insert(child.arguments.end(),
                               {"--max-bytes", std::to_string(options.max_bytes)});
    }
    if (options.compress) child.arguments.emplace_back("--compress");
    if (options.record_shapes) child.arguments.emplace_back("--record-shapes");
    if (options.profile_memory) child.arguments.emplace_back("--profile-memory");
    child.environment = {
        {"RINGSIDE_DISABLE", "1"}};  // where the user preloads the shim into everything
    child.own_group = true;          // Ctrl-C is for the command; the agent ends after it
    child.signal_with_us = SIGTERM;
    child.inherited_descriptor = ready;
    return child;
}

}  // namespace

OwnAgent::OwnAgent(const OwnAgentOptions& options, SignalGuard& signals)
    : signals_(signals),
      root_(options.root),
      job_(options.job),
      directory_((fs::path(options.root) / options.job).string()),
      endpoint_(agent::default_endpoint(options.root, options.job)) {}

Result<std::unique_ptr<OwnAgent>> OwnAgent::start(const OwnAgentOptions& options,
                                                  SignalGuard& signals) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return Error{ErrorCode::kInternal, "start the agent: pipe: " + errno_text(errno)};
    }
    Descriptor read_end(ends[0]);
    Descriptor write_end(ends[1]);
    std::unique_ptr<OwnAgent> agent(new OwnAgent(options, signals));
    const auto child =
        start_process(agent_command(options, agent->endpoint_, write_end.number()), signals);
    if (!child) {
        return child.error();
    }
    agent->pid_ = *child;
    write_end.close();
    const auto ready = agent->check_ready(read_end.number());
    if (!ready) {
        return ready.error();
    }
    return agent;
}

bool OwnAgent::is_gone() const {
    // One that was killed shuts its socket some time before its end shows.
    const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    pollfd ended{process.number(), POLLIN, 0};
    return ::poll(&ended, 1, kDying) == 1 && (ended.revents & POLLIN) != 0;
}

OwnAgent::~OwnAgent() {
    end();
    remove_traces();
}

Result<void> OwnAgent::check_ready(int ready_descriptor) {
    const Readiness readiness = await_ready(ready_descriptor, signals_);
    if (readiness.ready) {
        return {};
    }
    if (readiness.signal) {
        return Error{ErrorCode::kInternal, "stopped by signal " +
                                               std::to_string(*readiness.signal) +
                                               " before the command was started"};
    }
    return Error{ErrorCode::kInternal, "start the agent in " + directory_ +
                                           ": it ended before it was ready (its own words "
                                           "stand above); the command was not started"};
}

void OwnAgent::end() {
    if (pid_ < 0) {
        return;
    }
    ::kill(pid_, SIGTERM);
    if (!wait_at_most(pid_, signals_, kPatience)) {
        say("the agent (pid " + std::to_string(pid_) + ") did not end within " +
            std::to_string(kPatience.count()) + " s: killed");
        ::kill(pid_, SIGKILL);
        wait_at_most(pid_, signals_, kPatience);
    }
    pid_ = -1;
}

void OwnAgent::remove_traces() const {
    std::error_code ignored;
    if (const auto socket = agent::socket_path(endpoint_)) {
        fs::remove(*socket, ignored);
    }
    if (!keep_directory_) fs::remove_all(directory_, ignored);  // does not follow links
}

}  // namespace ringside::tools
