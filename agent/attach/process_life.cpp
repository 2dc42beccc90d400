#include "agent/attach/process_life.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace ringside::agent {
namespace {

/// linux/pidfd.h of 6.15; the headers we build with are older. An older kernel answers ENOTTY.
struct PidfdInfo {
    std::uint64_t mask;
    std::uint64_t cgroup;
    std::uint32_t ids[11];
    std::int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr std::uint64_t kPidfdInfoExit = 1u << 3;
constexpr unsigned long kPidfdGetInfo = _IOWR(0xff, 11, PidfdInfo);

Ending ending_of(int status) {
    if (WIFSIGNALED(status))
        return {Fate::kKilled, true, "signal " + std::to_string(WTERMSIG(status))};
    const int code = WEXITSTATUS(status);
    return {Fate::kExited, true, code == 0 ? "" : "exit status " + std::to_string(code)};
}

/// /proc/PID/stat from its third field on, the state; the command before it, in parentheses, may hold anything. Empty: no such process.
std::string stat_from_state(int pid) {
    char path[32];
    std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const FileHandle file(::open(path, O_RDONLY | O_CLOEXEC));
    char text[2048];
    const ssize_t size = file ? ::read(file.get(), text, sizeof text - 1) : -1;
    if (size <= 0) return "";
    text[size] = 0;
    const char* const end = std::strrchr(text, ')');
    return end == nullptr || end[1] == 0 ? "" : end + 2;
}

/// The wait status of a zombie, as its parent will get it: field 52.
std::optional<int> zombie_status(int pid) {
    const std::string fields = stat_from_state(pid);
    if (fields.empty() || fields[0] != 'Z') return std::nullopt;
    constexpr int kStateField = 3, kExitCodeField = 52;
    const char* at = fields.c_str();
    for (int field = kStateField; field < kExitCodeField; ++field) {
        at = std::strchr(at, ' ');
        if (at == nullptr) return std::nullopt;
        ++at;
    }
    return std::atoi(at);
}

std::uint64_t pid_namespace_of(const char* host_pid) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%s/ns/pid", host_pid);
    struct stat status {};
    return ::stat(path, &status) == 0 ? status.st_ino : 0;
}

/// Whether that is the process `id` of another namespace: the last of its pids is the innermost one's.
bool is_process(const char* host_pid, const schema::SegmentId& id) {
    if (pid_namespace_of(host_pid) != id.pid_namespace) return false;
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%s/status", host_pid);
    std::ifstream status(path);
    for (std::string line; std::getline(status, line);) {
        if (line.compare(0, 6, "NSpid:") != 0) continue;
        return line.substr(line.find_last_of(" \t") + 1) == std::to_string(id.pid);
    }
    return false;
}

/// The pid under which we see a process of a pid namespace below ours; 0: none such.
int find_host_pid(const schema::SegmentId& id) {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", none)) {
        const std::string name = entry.path().filename().string();
        if (name.find_first_not_of("0123456789") == std::string::npos &&
            is_process(name.c_str(), id))
            return std::atoi(name.c_str());
    }
    return 0;
}

}  // namespace

std::uint64_t own_pid_namespace() {
    struct stat status {};
    return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

ProcessLife::ProcessLife(const schema::SegmentId& id, int lock_descriptor)
    : lock_descriptor_(lock_descriptor) {
    // Without the lock the process is dead already and its pid may be another's by now.
    if (!lock_is_held()) return;
    const bool ours = id.pid_namespace == own_pid_namespace();
    host_pid_ = ours ? static_cast<int>(id.pid) : find_host_pid(id);
    if (host_pid_ == 0) return;
    pidfd_ = FileHandle(static_cast<int>(::syscall(SYS_pidfd_open, host_pid_, 0)));
    // It may have ended since it was found, and its pid be another's: the descriptor would be of that.
    if (ours || is_process(std::to_string(host_pid_).c_str(), id)) return;
    host_pid_ = 0;
    pidfd_.reset();
}

bool ProcessLife::lock_is_held() const {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_len = 1;
    return ::fcntl(lock_descriptor_, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool ProcessLife::ended() const {
    pollfd entry{pidfd_.get(), POLLIN, 0};
    return ::poll(&entry, 1, 0) == 1 && (entry.revents & POLLIN) != 0;
}

bool ProcessLife::has_program() const {
    char path[32];
    char target[8];
    std::snprintf(path, sizeof path, "/proc/%d/exe", host_pid_);
    return ::readlink(path, target, sizeof target) >= 0;
}

char ProcessLife::state() const {
    const std::string fields = host_pid_ == 0 ? "" : stat_from_state(host_pid_);
    return fields.empty() ? '\0' : fields[0];
}

std::optional<int> ProcessLife::wait_status() const {
    if (const auto status = zombie_status(host_pid_)) return status;
    PidfdInfo info{};
    info.mask = kPidfdInfoExit;
    if (::ioctl(pidfd_.get(), kPidfdGetInfo, &info) == 0 && (info.mask & kPidfdInfoExit) != 0)
        return info.exit_code;
    return std::nullopt;
}

std::optional<Ending> ProcessLife::check(schema::SegmentState state, bool successor) const {
    const bool closing = state == schema::SegmentState::kClosing;
    const Ending concluded{closing ? Fate::kExited : Fate::kKilled, false, ""};
    if (pidfd_) {
        if (ended()) {
            const auto status = wait_status();
            return status ? ending_of(*status) : concluded;
        }
        if (lock_is_held()) return std::nullopt;
        // The mapping is gone and the process is there: it runs another program now, or it is on its last steps, then its end follows.
        if (!has_program()) return std::nullopt;
        return Ending{Fate::kReplaced, true, ""};
    }
    if (lock_is_held()) return std::nullopt;
    if (successor) return Ending{Fate::kReplaced, false, ""};
    return concluded;
}

}  // namespace ringside::agent
