#include "tools/ringside/node_agent.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "agent/control/client.hpp"
#include "agent/control/endpoint.hpp"
#include "agent/control/job_folder.hpp"
#include "agent/control/recovery.hpp"
#include "agent/control/rendezvous.hpp"
#include "schema/control_page.hpp"
#include "tools/ringside/command.hpp"
#include "tools/ringside/job_files.hpp"
#include "tools/ringside/progress.hpp"
#include "tools/ringside/task_file.hpp"

namespace ringside::tools {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

const std::string kStepPrefix(agent::kStepPrefix);
/// Between two tries for a lock that others hold for moments.
constexpr int kBetweenTriesMs = 5;
/// For processes of the step that are dying; one that lives on keeps the directory.
constexpr int kMostRecoveries = 3, kBetweenRecoveriesMs = 100;
/// An agent's start takes a third of a second; one that takes as long hangs.
constexpr std::chrono::seconds kStartLimit{10};
/// An agent that was told to end writes what it holds; slurmd gives a step 30 s from the first signal to the last.
constexpr std::chrono::seconds kEndLimit{25};
/// Whoever holds the election starts or ends an agent; one that does not let it go hangs.
constexpr std::chrono::seconds kElectionLimit{40};

}  // namespace

Result<void> NodeAgent::open_directory() {
    path_ = options_.root + "/" + options_.job;
    const auto opened = agent::open_job_folder(options_.root, options_.job);
    if (!opened) {
        return opened.error();
    }
    directory_ = Descriptor(*opened);
    for (const auto& [name, lock] : {std::pair{std::string(agent::kElectionName), &election_},
                                     std::pair{kStepPrefix + options_.step, &step_},
                                     std::pair{std::string(schema::kLockFileName), &agent_}}) {
        auto file = agent::FileLock::open(directory_.number(), name);
        if (!file) {
            return file.error();
        }
        *lock = std::move(*file);
    }
    return {};
}

bool NodeAgent::directory_is_named() const {
    struct stat ours {
    }, there{};
    return ::fstat(directory_.number(), &ours) == 0 && ::stat(path_.c_str(), &there) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/// @return false: a signal came, or it was not to be had
bool NodeAgent::elect(Wait wait) {
    const auto deadline = Clock::now() + kElectionLimit;
    agent::FileLock::Answer answer;
    while ((answer = election_.take(false)) == agent::FileLock::Answer::kBusy) {
        if (wait == Wait::kNot || Clock::now() > deadline) {
            return false;
        }
        pollfd signal{signals_.descriptor(), POLLIN, 0};
        // After the command's end signals wait until the agent is ended in order.
        ::poll(&signal, wait == Wait::kUntilSignal ? 1 : 0, kBetweenTriesMs);
        if (wait == Wait::kBounded) {
            continue;
        }
        while (const auto taken = signals_.take()) {
            if (taken->number != SIGCHLD) {
                signal_ = taken->number;
                return false;
            }
        }
    }
    return answer == agent::FileLock::Answer::kTaken;
}

bool NodeAgent::has_agent() const {
    return agent_.others_hold_it();
}

/// Among the step's tasks. Under the election.
Result<void> NodeAgent::take_place() {
    const auto deadline = Clock::now() + kStartLimit;
    while (!has_place_) {
        const auto answer = step_.take(true);
        has_place_ = answer == agent::FileLock::Answer::kTaken;
        if (has_place_) {
            break;
        }
        // Only the step's agent takes it from all: it has found nobody, and ends.
        if (answer == agent::FileLock::Answer::kNever || Clock::now() > deadline) {
            return Error{ErrorCode::kInternal, "lock " + kStepPrefix + options_.step + " in " +
                                                   path_ + ": it can't be had"};
        }
        ::poll(nullptr, 0, kBetweenTriesMs);
    }
    return {};
}

Result<void> NodeAgent::enter() {
    // Where the last task of a step before takes the directory away between two of our calls.
    constexpr int kMostTries = 100;
    for (int tries = 1;; ++tries) {
        const auto opened = open_directory();
        if (!opened && tries < kMostTries && errno == ENOENT) {
            continue;
        }
        if (!opened) {
            return opened.error();
        }
        if (!elect(Wait::kUntilSignal)) {
            return Error{ErrorCode::kInternal,
                         "wait for the agent of job directory " + path_ +
                             (signal_ ? ": a signal came" : ": who starts it does not end")};
        }
        if (directory_is_named()) {
            break;
        }
    }
    Result<void> done = see_to_agent(false);
    follow();
    election_.release();
    return done;
}

/// Under the election.
Result<void> NodeAgent::see_to_agent(bool command_runs) {
    if (!has_agent()) {
        // First: once a task is there the resident agent starts one at once.
        agent::write_wish(directory_.number(),
                          {options_.member, options_.node, options_.output_root});
    }
    Result<void> placed = take_place();
    if (!placed || has_agent()) {
        return placed;
    }
    return is_residents(command_runs) ? Result<void>() : start(command_runs);
}

/// Where the user's resident agent lives: waits until it has given the directory an agent, which listens.
/// @return false: there is none, or it does not; true too where something came first: a signal, or the command's end
bool NodeAgent::is_residents(bool command_runs) {
    const Descriptor root(::open(options_.root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const std::string endpoint = agent::default_endpoint(options_.root, options_.job);
    const auto deadline = Clock::now() + kStartLimit;
    while (agent::is_held(root.number(), agent::kResidentName) && Clock::now() < deadline) {
        if (has_agent() && agent::Client::connect(endpoint)) {
            return true;
        }
        pollfd signal{signals_.descriptor(), POLLIN, 0};
        ::poll(&signal, 1, kBetweenTriesMs);
        while (const auto taken = signals_.take()) {
            if (taken->number != SIGCHLD) {
                signal_ = taken->number;
            }
            if (taken->number != SIGCHLD || command_runs) {
                return true;
            }
        }
    }
    return false;
}

Result<void> NodeAgent::keep() {
    ended_.close();
    reap();
    if (!directory_is_named()) {
        has_place_ = false;
        if (const auto opened = open_directory(); !opened) {
            return opened.error();
        }
    }
    if (!elect(Wait::kNot)) {
        return {};  // another task is at it
    }
    Result<void> done = see_to_agent(true);
    follow();
    election_.release();
    return done;
}

void NodeAgent::reap() {
    if (child_ > 0 && ::waitpid(child_, nullptr, WNOHANG) != 0) {
        child_ = -1;
    }
}

/// A descriptor that tells the end of the agent that there is.
void NodeAgent::follow() {
    if (!has_agent()) {
        return;
    }
    const pid_t pid = holder_pid(directory_.number());
    if (pid <= 0 || !is_agent(pid)) {
        return;  // in another pid namespace, or gone already
    }
    ended_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

Result<void> NodeAgent::write_owner(pid_t agent) const {
    constexpr mode_t kPrivate = 0600;
    const std::string text = options_.step + " " + std::to_string(agent);
    const Descriptor owner(::openat(directory_.number(), agent::kOwnerName,
                                    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                                    kPrivate));
    if (::write(owner.number(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        return Error{ErrorCode::kInternal,
                     "write " + path_ + "/" + agent::kOwnerName + ": " + errno_text(errno)};
    }
    return {};
}

/// @param command_runs  whose end is not to be waited out
Result<void> NodeAgent::start(bool command_runs) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return Error{ErrorCode::kInternal, "start the agent: pipe: " + errno_text(errno)};
    }
    const Descriptor read_end(ends[0]);
    Descriptor write_end(ends[1]);
    constexpr mode_t kPrivate = 0600;
    const Descriptor log(::openat(directory_.number(), agent::kLogName,
                                  O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kPrivate));
    ChildOptions child;
    child.program = options_.program;
    child.arguments = {options_.program,
                       "--config",  // none: a step's agent is not the user's own
                       "",
                       "--dir",
                       options_.root,
                       "--job",
                       options_.job,
                       "--while-locked",
                       path_ + "/" + kStepPrefix + options_.step,
                       "--ready-fd",
                       std::to_string(write_end.number())};
    if (!options_.member.empty()) {
        child.arguments.insert(child.arguments.end(), {"--rendezvous", options_.member});
    }
    if (!options_.node.empty()) {
        child.arguments.insert(child.arguments.end(), {"--node", options_.node});
    }
    if (!options_.output_root.empty()) {
        child.arguments.insert(child.arguments.end(), {"--output", options_.output_root});
    }
    child.environment = {{"RINGSIDE_DISABLE", "1"}};
    child.apart = true;
    child.output_descriptor = log.number();
    child.inherited_descriptor = write_end.number();
    const auto pid = start_process(child, signals_);
    if (!pid) {
        return pid.error();
    }
    child_ = *pid;
    write_end.close();
    auto owned = write_owner(child_);
    const Readiness readiness = await_ready(read_end.number(), signals_, kStartLimit, command_runs);
    if (readiness.signal) {
        signal_ = readiness.signal;
    }
    if (readiness.ready || has_agent()) {
        return owned;
    }
    reap();
    return Error{ErrorCode::kInternal,
                 "start the agent in " + path_ +
                     (readiness.signal ? ": a signal came first"
                      : child_ > 0     ? ": it is not ready yet"
                                       : ": it ended before it was ready; " +
                                         read_small(directory_.number(), agent::kLogName))};
}

bool NodeAgent::is_of_our_step() const {
    return read_small(directory_.number(), agent::kOwnerName) ==
           options_.step + " " + std::to_string(holder_pid(directory_.number()));
}

void NodeAgent::end_agent() {
    const Progress progress("the agent writes what it holds");
    auto client = agent::Client::connect(agent::default_endpoint(options_.root, options_.job));
    if (client) {
        const auto told = (*client)->ask<fbs::ShutdownReplyT>(fbs::ShutdownRequestT{});
        static_cast<void>(told);  // it ends in any case: nobody holds its step's lock any more
    }
    const auto deadline = Clock::now() + kEndLimit;
    while (has_agent()) {
        if (Clock::now() > deadline) {
            say("the agent of " + path_ + " has not ended within " +
                std::to_string(kEndLimit.count()) + " s; `ringside recover` has what it leaves");
            return;
        }
        pollfd ended{ended_.number(), POLLIN, 0};
        ::poll(&ended, ended_.number() >= 0 ? 1 : 0, kBetweenTriesMs);
    }
}

void NodeAgent::leave() {
    if (!has_place_) {
        return;
    }
    // Whoever gives its place up last finds no other, also where two do at once; nobody else waits for anything.
    step_.release();
    has_place_ = false;
    if (step_.others_share_it() || !elect(Wait::kBounded)) {
        return;
    }
    if (!step_.others_share_it()) {
        if (!has_agent()) {
            recover();
            agent::forget_agent(options_.member,
                                options_.node.empty() ? agent::default_node() : options_.node);
        } else if (is_of_our_step()) {
            end_agent();
            // What the command has started may die a moment after it (a sandbox's inside), and nobody comes after us; tasks of another step see to theirs.
            const bool last = !agent::look_at_folder(directory_.number()).tasks;
            for (int tries = 0; last && tries < kMostRecoveries && has_leftovers(); ++tries) {
                ::poll(nullptr, 0, kBetweenRecoveriesMs);
                recover();
            }
        }
        remove_task_files(directory_.number(), options_.step);
        if (directory_is_named()) {
            agent::remove_job_folder(directory_.number(), path_);
        }
    }
    election_.release();
}

/// Whether there is anything that only an agent makes sense of.
bool NodeAgent::has_leftovers() const {
    std::error_code error;
    const fs::directory_iterator entries(path_, error);
    return std::any_of(begin(entries), end(entries), [](const fs::directory_entry& entry) {
        const std::string name = entry.path().filename().string();
        return agent::is_segment(name) || name == schema::kCaptureNoteName;
    });
}

/// The agent has died and nobody has started another: what it and the tasks have left is ended here, for nobody comes after us.
void NodeAgent::recover() const {
    if (!has_leftovers()) {
        return;
    }
    const Progress progress("ending what an agent that died has left");
    const auto recovery = agent::recover_directory(
        options_.root, options_.job,
        options_.output_root.empty() ? agent::default_output_root() : options_.output_root,
        options_.node);
    if (!recovery) {
        say(recovery.error().message);
    } else if (!recovery->dump.empty()) {
        say("the agent of " + path_ + " had died; its capture is in " + recovery->dump);
    }
}

}  // namespace ringside::tools
