// `ringside wrap`: what a launcher starts in place of each task's command. The node gets its agent, the command its preload, the launcher the
// command's own end.
//
//   a place among the job's tasks on this node, an agent -> command, preloaded -> its end -> the step's last task here ends the agent -> the same end
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "agent/control/endpoint.hpp"
#include "agent/control/pauses.hpp"
#include "tools/ringside/command.hpp"
#include "tools/ringside/launch_step.hpp"
#include "tools/ringside/node_agent.hpp"
#include "tools/ringside/process.hpp"
#include "tools/ringside/signal_twin.hpp"
#include "tools/ringside/task_file.hpp"
#include "tools/ringside/traceable.hpp"
#include "tools/ringside/traced_command.hpp"

namespace ringside::tools {

namespace {

struct Options {
    std::string node;
    std::string output;
};

/// Its inode; 0: unknown.
std::uint64_t own_pid_namespace() {
    struct stat status {};
    return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

/// Ends this process as the command has ended, by the same signal if it was one, so that the launcher sees no difference. Signals stay blocked: one that was
/// sent to the task, and comes to us when the command has ended already, must not change that.
[[noreturn]] void end_as(int wait_status) {
    std::fflush(nullptr);
    if (!WIFSIGNALED(wait_status)) {
        ::_exit(WEXITSTATUS(wait_status));
    }
    const int signal = WTERMSIG(wait_status);
    const rlimit no_second_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_second_core);
    ::prctl(PR_SET_DUMPABLE, 0);  // where cores go to a program, that limit says nothing
    ::signal(signal, SIG_DFL);
    sigset_t only;
    ::sigemptyset(&only);
    ::sigaddset(&only, signal);
    ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
    ::raise(signal);
    ::_exit(kExitSignal + signal);
}

/// Waits for the command, hands it the signals that come, and sees to it that there is an agent meanwhile.
int wait_for(pid_t pid, NodeAgent& agent, SignalGuard& signals, SignalTwin& twin) {
    agent::Pauses pauses;  // one that ends again and again, or can't be started
    std::string said;
    int status = 0;
    const auto hand_on = [&](int signal) {
        if (!twin.got_it_too(signal)) {
            ::kill(pid, signal);
        }
    };
    while (::waitpid(pid, &status, WNOHANG) == 0) {
        const bool looks = pauses.over();
        const bool watched = agent.ended() >= 0;
        std::array<pollfd, 2> waiting = {pollfd{signals.descriptor(), POLLIN, 0},
                                         pollfd{looks && watched ? agent.ended() : -1, POLLIN, 0}};
        ::poll(waiting.data(), waiting.size(), looks && watched ? -1 : pauses.left_ms());
        while (const auto signal = signals.take()) {
            if (signal->number != SIGCHLD) {
                hand_on(signal->number);
            }
        }
        if (!pauses.over() || (watched && waiting[1].revents == 0)) {
            continue;
        }
        const auto kept = agent.keep();
        pauses.begin();
        const std::string wrong = kept ? "" : kept.error().message;
        if (!kept && wrong != said) {
            say(wrong);
        }
        said = wrong;
        if (const auto signal = agent.take_signal()) {
            hand_on(*signal);
        }
    }
    return status;
}

/// Whatever is wrong with us, the task runs.
int run_plain(const std::string& program, const Words& words) {
    std::vector<char*> arguments;
    for (const std::string& word : words) {
        arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    ::execv(program.c_str(), arguments.data());
    say("start " + program + ": " + errno_text(errno));
    return kExitCannotRun;
}

int run_wrapped(const Options& options, const Words& words) {
    if (words.empty()) {
        return fail({ErrorCode::kUsage, "wrap: no command given; see `ringside wrap --help`"});
    }
    const FoundProgram found = find_program(words[0], variable("PATH"));
    if (found.exit_code != 0) {
        say(found.reason);
        return found.exit_code;
    }
    const auto paths = own_install_paths();
    if (!paths) {
        say(paths.error().message + "; the command runs without");
        return run_plain(found.path, words);
    }
    const LaunchStep step = launch_step(variable, host_name());
    const std::string root = agent::default_root();
    SignalGuard signals(Taken::kForOthers);
    NodeAgent agent({paths->agent, root, step.job, step.step,
                     options.node.empty() ? step.node : options.node, step.member, options.output},
                    signals);
    const auto entered = agent.enter();
    if (!entered) {
        say(entered.error().message + "; the command runs without an agent");
    }
    TracedCommand traced = traced_command(found.path, words, paths->shim, root, step.job);
    ChildOptions& command = traced.child;
    command.signal_with_us = SIGKILL;
    SignalTwin twin(signals);
    twin.forget();
    int exec_errno = 0;
    const auto child = start_process(command, signals, &exec_errno);
    if (!child) {
        agent.leave();
        say(child.error().message);
        return exec_errno == ENOENT ? kExitNotFound : kExitCannotRun;
    }
    TaskFile task(
        agent.directory(), step.step,
        {*child, own_pid_namespace(), step.rank, step.ranks_here, traced.untraced, found.path});
    // It came to us while there was no command.
    if (const auto signal = agent.take_signal()) {
        ::kill(*child, *signal);
    }
    const int status = wait_for(*child, agent, signals, twin);
    task.release();
    agent.leave();
    end_as(status);
}

}  // namespace

Action setup_wrap(CLI::App& verb, const Words& rest) {
    const auto options = std::make_shared<Options>();
    verb.add_option("--node", options->node,
                    "this node's name; default RINGSIDE_NODE, else Slurm's, else the host's")
        ->type_name("NAME");
    verb.add_option("--agent-output", options->output,
                    "the agent writes dumps beneath it; default /var/tmp/ringside-<uid>")
        ->type_name("DIR");
    verb.footer(
        "Examples:\n"
        "  srun -N3 --ntasks-per-node=2 ringside-wrap python3 train.py\n"
        "  ringside trace --job $SLURM_JOB_ID --duration 2s -o DIR       (meanwhile)\n"
        "Each task is started through it: one agent a node and job, the preload for CMD alone. "
        "Nothing is recorded until\n"
        "`ringside trace` asks. Signals go to CMD; when the step's last task on a node has ended, "
        "its agent writes what it holds\n"
        "and ends. Where this user's resident agent lives (`ringside agent --all`), both is its.\n"
        "Other hosts find the agents by ~/.ringside (a key is made there); hosts that "
        "share no home need\n"
        "the same ~/.ringside/key on each, from `ringside keygen`. Whatever is wrong with "
        "ringside, CMD runs.\n"
        "Exit status: CMD's own; it dies of the signal that CMD died of; 126 CMD is not "
        "executable, 127 no such command, 2 usage");
    return [options, &rest] { return run_wrapped(*options, rest); };
}

}  // namespace ringside::tools
