// Runs a command and looks at each process that comes of it, in the moment of its end, from outside: ptrace stops a process in its exit
// with all of its mappings still there. So a test knows that the shim was in a program that runs for a millisecond, and what it held.
//
//   witness REPORT SHIM JOB_DIRECTORY COMMAND...
//
// REPORT gets a line for each process that was seen at its end: pid, executable, whether the shim was mapped, resident KiB of its segment and of
// the control page (-1: not mapped), threads in all, those of them named "ringside", executables run one after the other. The exit status is the command's; 128 + N
// where it died of signal N; 125 where it could not be run so.
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

namespace {

constexpr int kCanNotTrace = 125;

struct Process {
    int threads = 1;
    int own_threads = 0;  ///< of ours
    int programs = 0;     ///< exec() calls that succeeded
    std::string memory;   ///< what it had mapped when its first thread ended
};

std::string proc(pid_t pid, const char* name) {
    return "/proc/" + std::to_string(pid) + "/" + name;
}

std::string first_line(const std::string& path) {
    std::string line;
    std::ifstream file(path);
    std::getline(file, line);
    return line;
}

pid_t group_of(pid_t thread) {
    std::ifstream status(proc(thread, "status"));
    for (std::string line; std::getline(status, line);) {
        if (line.compare(0, 5, "Tgid:") == 0) return std::stoi(line.substr(5));
    }
    return thread;
}

std::string executable_of(pid_t pid) {
    char path[4096];
    const ssize_t length = readlink(proc(pid, "exe").c_str(), path, sizeof path);
    return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : "?";
}

class Witness {
public:
    Witness(const char* report, const char* shim, const char* job_directory)
        : report_(report), shim_(shim), job_directory_(job_directory) {}

    /// @return the command's wait status
    int watch(pid_t command) {
        int result = 0;
        for (;;) {
            int status = 0;
            const pid_t pid = waitpid(-1, &status, __WALL);
            if (pid < 0 && errno == EINTR) continue;
            if (pid < 0) return result;
            if (WIFSTOPPED(status)) {
                stopped(pid, status);
                continue;
            }
            // A process ends after all of its threads.
            tell(pid);
            if (pid == command) result = status;
        }
    }

private:
    void stopped(pid_t pid, int status) {
        const int event = status >> 16;
        int signal = WSTOPSIG(status);
        if (event == PTRACE_EVENT_STOP) {
            // A group stop stays one; a new process or thread goes on.
            const bool group_stop = signal != SIGTRAP;
            ptrace(group_stop ? PTRACE_LISTEN : PTRACE_CONT, pid, nullptr, nullptr);
            return;
        }
        if (event != 0) {
            note(pid, event);
            signal = 0;
        }
        ptrace(PTRACE_CONT, pid, nullptr, reinterpret_cast<void*>(static_cast<long>(signal)));
    }

    void note(pid_t pid, int event) {
        const pid_t group = group_of(pid);
        Process& process = processes_[group];
        if (event == PTRACE_EVENT_EXEC) ++process.programs;
        if (event == PTRACE_EVENT_CLONE) {
            unsigned long made = 0;
            ptrace(PTRACE_GETEVENTMSG, pid, nullptr, &made);
            // A clone() may make a process, too.
            if (group_of(static_cast<pid_t>(made)) == group) ++process.threads;
        }
        if (event != PTRACE_EVENT_EXIT) return;
        if (first_line(proc(pid, "comm")) == "ringside") ++process.own_threads;
        if (pid == group) look_at_memory(pid, process);
    }

    void tell(pid_t pid) {
        const auto process = processes_.find(pid);
        if (process == processes_.end() || process->second.memory.empty()) return;
        const Process& seen = process->second;
        report_ << pid << '\t' << seen.memory << '\t' << seen.threads << '\t' << seen.own_threads
                << '\t' << seen.programs << std::endl;
        processes_.erase(process);
    }

    void look_at_memory(pid_t pid, Process& process) {
        bool shim = false;
        long segment_kib = -1, control_kib = -1;
        long* count = nullptr;
        std::ifstream maps(proc(pid, "smaps"));
        for (std::string line; std::getline(maps, line);) {
            if (line.find('-') < line.find(' ')) {
                const std::size_t path = line.find('/');
                const std::string mapped = path == std::string::npos ? "" : line.substr(path);
                shim = shim || mapped == shim_;
                const bool ours = mapped.compare(0, job_directory_.size(), job_directory_) == 0;
                const bool control = ours && mapped == job_directory_ + "/control";
                count = !ours ? nullptr : control ? &control_kib : &segment_kib;
                if (count != nullptr && *count < 0) *count = 0;
            } else if (count != nullptr && line.compare(0, 4, "Rss:") == 0) {
                *count += std::stol(line.substr(4));
            }
        }
        process.memory = executable_of(pid) + '\t' + (shim ? "1" : "0") + '\t' +
                         std::to_string(segment_kib) + '\t' + std::to_string(control_kib);
    }

    std::ofstream report_;
    std::string shim_;
    std::string job_directory_;
    std::map<pid_t, Process> processes_;
};

/// Waits to be traced, then becomes the command.
[[noreturn]] void become(char** command, int go) {
    char word = 0;
    if (read(go, &word, 1) != 1) _exit(kCanNotTrace);
    close(go);
    execvp(command[0], command);
    _exit(errno == ENOENT ? 127 : 126);
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 5) {
        std::fprintf(stderr, "usage: witness REPORT SHIM JOB_DIRECTORY COMMAND...\n");
        return kCanNotTrace;
    }
    int go[2];
    if (pipe2(go, O_CLOEXEC) != 0) return kCanNotTrace;
    const pid_t command = fork();
    if (command < 0) return kCanNotTrace;
    if (command == 0) {
        close(go[1]);
        // The preload is for the command, not for this program.
        if (const char* preload = getenv("WITNESS_PRELOAD")) setenv("LD_PRELOAD", preload, 1);
        unsetenv("WITNESS_PRELOAD");
        become(arguments + 4, go[0]);
    }
    const long options = PTRACE_O_EXITKILL | PTRACE_O_TRACEEXIT | PTRACE_O_TRACEFORK |
                         PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
    if (ptrace(PTRACE_SEIZE, command, nullptr, reinterpret_cast<void*>(options)) != 0) {
        std::fprintf(stderr, "witness: ptrace: %s\n", std::strerror(errno));
        kill(command, SIGKILL);
        return kCanNotTrace;
    }
    Witness witness(arguments[1], arguments[2], arguments[3]);
    const bool told = write(go[1], "g", 1) == 1;
    close(go[0]);
    close(go[1]);
    const int status = told ? witness.watch(command) : kCanNotTrace << 8;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
