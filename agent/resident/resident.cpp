#include "agent/resident/resident.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "agent/control/endpoint.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

/// What no event tells (a lock that is let go) is seen then.
constexpr int kLookUpMs = 1000;

Error no_root(const std::string& root, int error) {
    const bool refused = error == EPERM || error == ELOOP || error == ENOTDIR;
    return {
        refused ? ErrorCode::kRefused : ErrorCode::kUsage,
        "hold root " + root + ": " +
            (refused ? "it must be a directory of this user, no link, that no other may write to"
                     : error_text(error)) +
            "; give another --dir"};
}

std::string read_holder(const FileLock& lock) {
    std::array<char, 256> text{};
    const ssize_t size = ::pread(lock.descriptor(), text.data(), text.size(), 0);
    const std::string holder(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    return holder.empty() ? "one that has not yet said its name"
                          : holder.substr(0, holder.find('\n'));
}

}  // namespace

bool is_residents_job(const std::string& name) {
    constexpr std::string_view kRun = "run-";
    const bool of_run = name.starts_with(kRun) &&
                        name.find_first_not_of("0123456789", kRun.size()) == std::string::npos;
    return !of_run && check_name("job", name);
}

schema::Result<Resident> Resident::open(const std::string& root, const std::string& node) {
    Resident resident(root, node);
    resident.notify_ = FileHandle(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (auto held = resident.hold(); !held) return held.error();
    return resident;
}

/// Also where somebody has emptied the root (a cleaner, logind's RemoveIPC).
schema::Result<void> Resident::hold() {
    while (!lock_.is_named(AT_FDCWD, root_ + "/" + kResidentName)) {
        folder_ = open_private_directory(AT_FDCWD, root_.c_str());
        if (!folder_) return no_root(root_, errno);
        auto lock = FileLock::open(folder_.get(), kResidentName);
        if (!lock) return lock.error();
        if (lock->take(false) != FileLock::Answer::kTaken) {
            return Error{ErrorCode::kRefused, "be the resident agent of " + root_ + ": " +
                                                  read_holder(*lock) +
                                                  " is it already; end that one first"};
        }
        lock_ = std::move(*lock);
        const std::string text =
            "resident agent with pid " + std::to_string(::getpid()) + " of node " + node_ + "\n";
        if (::ftruncate(lock_.descriptor(), 0) != 0 ||
            ::pwrite(lock_.descriptor(), text.data(), text.size(), 0) !=
                static_cast<ssize_t>(text.size()))
            return no_root(root_, errno);
        ::inotify_add_watch(notify_.get(), root_.c_str(), IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
    }
    return {};
}

schema::Result<std::optional<ResidentJob>> Resident::serve(int stop_fd, int reload_fd,
                                                           const std::function<void()>& reload,
                                                           const std::function<void()>& tend) {
    pollfd stop{stop_fd, POLLIN, 0};
    while (::poll(&stop, 1, 0) == 0) {
        if (auto held = hold(); !held) {
            end();
            return held.error();
        }
        reap();
        if (auto job = look()) return job;
        wait(stop_fd, reload_fd);
        hand_on(reload_fd, reload);
        if (tend) tend();
    }
    end();
    return std::optional<ResidentJob>();
}

void Resident::wait(int stop_fd, int reload_fd) const {
    std::vector<pollfd> waiting = {
        {stop_fd, POLLIN, 0}, {reload_fd, POLLIN, 0}, {notify_.get(), POLLIN, 0}};
    for (const auto& [name, job] : jobs_) {
        if (job.ended) waiting.push_back({job.ended.get(), POLLIN, 0});
    }
    ::poll(waiting.data(), waiting.size(), kLookUpMs);
    alignas(inotify_event) std::array<char, 4096> drop;
    while (::read(notify_.get(), drop.data(), drop.size()) > 0) {
    }
}

void Resident::hand_on(int reload_fd, const std::function<void()>& reload) const {
    signalfd_siginfo drop;
    bool any = false;
    while (reload_fd >= 0 && ::read(reload_fd, &drop, sizeof drop) > 0) any = true;
    if (!any) return;
    reload();
    for (const auto& [name, job] : jobs_) {
        if (job.pid != 0) ::kill(job.pid, SIGHUP);
    }
}

void Resident::reap() {
    for (auto& [name, job] : jobs_) {
        int status = 0;
        if (job.pid == 0 || ::waitpid(job.pid, &status, WNOHANG) == 0) continue;
        job.killed = WIFSIGNALED(status);
        if (job.killed)
            spdlog::warn("the agent of {}/{} (pid {}) was killed by signal {}", root_, name,
                         job.pid, WTERMSIG(status));
        job.pid = 0;
        job.ended.reset();
    }
}

/// Looks through the root.
/// @return in a child
std::optional<ResidentJob> Resident::look() {
    std::set<std::string> there;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(root_, error)) {
        const std::string name = entry.path().filename().string();
        if (!is_residents_job(name)) continue;
        const FileHandle folder(
            ::openat(folder_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (!folder) continue;
        there.insert(name);
        Job& job = jobs_[name];
        if (!needs_agent(name, job, folder.get()) || !job.pauses.over()) continue;
        job.pauses.begin();
        if (start(job)) return ResidentJob{name, read_wish(folder.get())};
    }
    std::erase_if(jobs_, [&](const auto& entry) {
        return entry.second.pid == 0 && !there.contains(entry.first);
    });
    return std::nullopt;
}

bool Resident::needs_agent(const std::string& name, Job& job, int folder) {
    // Before the look, so that nothing comes unseen after it.
    watch(name, job, job.pid == 0);
    if (job.pid != 0) return false;
    const FolderState state = look_at_folder(folder);
    if (state.agent) watch(name, job, false);
    return !state.agent && (state.segments || state.tasks || job.killed);
}

/// Watched as long as it has no agent: a job that runs makes and removes files all the time.
void Resident::watch(const std::string& name, Job& job, bool on) const {
    if (on && job.watch < 0) {
        job.watch = ::inotify_add_watch(notify_.get(), (root_ + "/" + name).c_str(),
                                        IN_CREATE | IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW);
    } else if (!on && job.watch >= 0) {
        ::inotify_rm_watch(notify_.get(), std::exchange(job.watch, -1));
    }
}

/// @return true in the child
bool Resident::start(Job& job) {
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child == 0) {
        // The jobs' own tasks see to another agent; one that nobody ends any more must not stay.
        ::prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (::getppid() != parent) ::_exit(0);
        return true;
    }
    if (child < 0) {
        spdlog::warn("start an agent: fork: {}", error_text(errno));
        return false;
    }
    job.pid = child;
    job.ended = FileHandle(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    return false;
}

/// First the lock: jobs whose agents end now need not wait for new ones of ours.
void Resident::end() {
    if (lock_.is_named(folder_.get(), kResidentName)) ::unlinkat(folder_.get(), kResidentName, 0);
    lock_ = FileLock();
    for (const auto& [name, job] : jobs_) {
        if (job.pid != 0) ::kill(job.pid, SIGTERM);
    }
    for (const auto& [name, job] : jobs_) {
        while (job.pid != 0 && ::waitpid(job.pid, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
}

}  // namespace ringside::agent
