// ringside-agent: options, signals, and the order in which things are made: the engine takes the directory's lock, only then the socket is
// bound (a stale one is taken over under that lock), only then a capture from the start begins, and only then other hosts are told where it is (where that takes
// long: later) and "ready" is said.
#include <fcntl.h>
#include <signal.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/attach/file_handle.hpp"
#include "agent/capture/engine.hpp"
#include "agent/control/audit.hpp"
#include "agent/control/endpoint.hpp"
#include "agent/control/held_jobs.hpp"
#include "agent/control/job_folder.hpp"
#include "agent/control/rendezvous.hpp"
#include "agent/control/server.hpp"
#include "agent/metrics/metrics_keeper.hpp"
#include "agent/metrics/metrics_process.hpp"
#include "agent/options.hpp"
#include "agent/places.hpp"
#include "agent/reload.hpp"
#include "agent/resident/resident.hpp"
#include "agent/resident/unused.hpp"

namespace {

using namespace ringside::agent;
namespace schema = ringside::schema;
using ringside::schema::Error;
using ringside::schema::ErrorCode;

int fail(const Error& error) {
    std::fprintf(stderr, "ringside-agent: %s\n", error.message.c_str());
    return static_cast<int>(error.code);
}

/// What end_when_unlocked() sends.
int unlocked_signal() {
    return SIGRTMIN;
}

/// Signals that end the agent, as a descriptor: blocked before any thread is made, so that all threads inherit that.
/// @param while_locked  signals are for the tasks: a launcher sends them to all processes of a step
/// @param reloads       SIGHUP ends nobody: ReloadThread, or the resident agent, waits for it
int end_signals(bool while_locked, bool reloads) {
    sigset_t usual, own, blocked;
    sigemptyset(&usual);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&usual, signal);
    sigemptyset(&own);
    sigaddset(&own, unlocked_signal());
    sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP})
        sigdelset(&blocked, fault);
    if (reloads) {
        ::sigprocmask(SIG_BLOCK, &usual, nullptr);
        sigdelset(&usual, SIGHUP);
    }
    if (::sigprocmask(SIG_BLOCK, while_locked ? &blocked : &usual, nullptr) != 0) return -1;
    ::signal(SIGPIPE, SIG_IGN);  // a reader of --ready-fd or of the log may go before us
    return ::signalfd(-1, while_locked ? &own : &usual, SFD_CLOEXEC | SFD_NONBLOCK);
}

void start_log(const std::string& level) {
    auto logger = spdlog::stderr_color_mt("ringside-agent");
    logger->set_level(spdlog::level::from_str(level));
    logger->set_pattern("%n: %^%l%$: %v");
    spdlog::set_default_logger(std::move(logger));
}

/// Once there is the job directory.
/// @return what keeps it from being written
schema::Result<void> start_audit(const AgentOptions& options) {
    const auto log = spdlog::default_logger();
    std::vector<spdlog::sink_ptr> sinks = log->sinks();
    if (options.audit == "off") return {};
    if (options.audit == "file") {
        const std::string path =
            options.engine.root + "/" + options.engine.job + "/" + std::string(kLogName);
        const FileHandle file(::open(path.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
                                     S_IRUSR | S_IWUSR));
        if (!file) return Error{ErrorCode::kUsage, "write " + path + ": " + error_text(errno)};
        sinks = {std::make_shared<spdlog::sinks::basic_file_sink_mt>(path)};
    }
    auto audit = std::make_shared<spdlog::logger>("ringside-agent", sinks.begin(), sinks.end());
    audit->set_level(spdlog::level::trace);
    audit->flush_on(spdlog::level::trace);
    if (options.audit == "file") audit->set_pattern("%n: %l: %v");
    Audit::write_to(std::move(audit));
    return {};
}

/// Where memory runs out, in the job's control group too, we go and not the job. What is in its rings stays there for the next agent.
void be_first_to_go() {
    constexpr char kFirst[] = "1000";
    const FileHandle file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
    (void)!::write(file.get(), kFirst, sizeof kFirst - 1);  // refused: then as it was
}

/// A leader has a connection for each node. The usual soft limit of 1024 is there for programs that select(2), which we are not.
void allow_many_descriptors() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

/// To who started us: over a pipe, and to systemd in its way (sd_notify(3): a datagram).
void say_ready(int fd) {
    if (const char* const socket = ::secure_getenv("NOTIFY_SOCKET"); socket != nullptr) {
        sockaddr_un name{};
        name.sun_family = AF_UNIX;
        const std::size_t size = std::min(std::strlen(socket), sizeof name.sun_path - 1);
        std::memcpy(name.sun_path, socket, size);
        if (name.sun_path[0] == '@') name.sun_path[0] = 0;
        constexpr char kSaid[] = "READY=1";
        const FileHandle to(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        ::sendto(to.get(), kSaid, sizeof kSaid - 1, MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&name),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size));
        ::unsetenv("NOTIFY_SOCKET");  // it is not the jobs' agents'
    }
    if (fd < 0) return;
    constexpr char kReady[] = "ready\n";
    (void)!::write(fd, kReady, sizeof kReady - 1);  // whoever waits and is gone needs no answer
    ::close(fd);
}

/// Ends this agent once nobody else holds a lock on `path`. The thread ends with the process: nothing wakes it from its wait.
void end_when_unlocked(const std::string& path) {
    std::thread([path] {
        const FileHandle file(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
        struct flock whole {};
        whole.l_type = F_WRLCK;
        whole.l_whence = SEEK_SET;
        while (file && ::fcntl(file.get(), F_OFD_SETLKW, &whole) != 0 && errno == EINTR) {
        }
        ::kill(::getpid(), unlocked_signal());
    }).detach();
}

/// A launcher that kills a step kills what the tasks have started a moment after them. One that lives on keeps its segment.
void await_dying(const Engine& engine) {
    constexpr Milliseconds kMostWait{500}, kBetweenLooks{10};
    const auto deadline = std::chrono::steady_clock::now() + kMostWait;
    while (engine.status().processes > 0 && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(kBetweenLooks);
}

/// What other hosts reach it by. Where that can't be, its log says so, and who is here is served.
std::optional<FarSetup> far_setup(const AgentOptions& options) {
    auto user = find_or_make_key(options.key_file);
    auto key = user ? job_key(*user, family_of(*options.rendezvous)) : user;
    if (!key) {
        spdlog::warn("{}; other hosts can't ask this agent", key.error().message);
        return std::nullopt;
    }
    const auto ports = rendezvous_ports(*options.rendezvous);
    return FarSetup{own_address(),
                    {ports.begin(), ports.end()},
                    std::move(*key),
                    {*options.rendezvous, options.engine.node, ""}};
}

/// On a thread that ends with the process: a name server or a home may not answer for long, and the tasks' commands wait for us.
void listen_far(Server& server, const AgentOptions& options) {
    constexpr Milliseconds kMostWait{1000};
    std::packaged_task<std::optional<FarSetup>()> find([options] { return far_setup(options); });
    auto found = find.get_future();
    std::thread(std::move(find)).detach();
    server.listen_far(std::move(found), kMostWait);
}

/// @param election  of the directory, where that is unused: for who takes it away
int serve(const AgentOptions& options, int signals, Reload& reload, FileLock& election) {
    auto engine = Engine::open(options.engine);
    if (!engine) return fail(engine.error());
    if (auto started = start_audit(options); !started) spdlog::warn(started.error().message);
    auto server = Server::bind(**engine, {.endpoint = options.endpoint,
                                          .version = RINGSIDE_VERSION,
                                          .lease = Milliseconds(options.lease_ms),
                                          .key = options.key});
    if (!server) return fail(server.error());
    if (options.capture_from_start) {
        CaptureRequest request;
        request.id = new_capture_id();
        request.name = options.name;
        // The dump of the agent that this one stood by for has that name.
        if (options.engine.standby && !request.name.empty() && (*engine)->recovered())
            request.name += "-" + std::to_string(::getpid());
        request.max_bytes = options.max_bytes;
        request.compress = options.compress;
        request.options =
            ringside::schema::capture_options(options.record_shapes, options.profile_memory);
        if (auto started = (*server)->service().capture_from_start(request); !started)
            return fail(started.error());
    }
    if (!options.while_locked.empty()) end_when_unlocked(options.while_locked);
    std::optional<Unused> unused;
    if (options.while_used) unused.emplace(**engine);
    std::optional<ReloadThread> reloading;
    if (reload.wanted()) reloading.emplace(reload, **engine);
    if (options.rendezvous) listen_far(**server, options);
    say_ready(options.ready_fd);
    spdlog::info("node {} listens on {}", options.engine.node, options.endpoint);
    (*server)->serve(signals);
    if (!options.while_locked.empty()) await_dying(**engine);
    if (unused) election = unused->end();
    auto finished = (*server)->finish();
    return finished ? 0 : fail(finished.error());
}

/// Before anything is opened or a thread made: it forks.
/// @return the process that does; 0: none was asked for
schema::Result<pid_t> serve_metrics(const AgentOptions& options, const std::string& address) {
    if (address.empty()) return 0;
    const EngineOptions& engine = options.engine;
    const auto agents = [&]() -> std::vector<MetricsSetup::Asked> {
        if (!options.all) return {{engine.job, options.endpoint}};
        std::vector<MetricsSetup::Asked> asked;
        for (const std::string& job : held_jobs(engine.root))
            asked.push_back({job, default_endpoint(engine.root, job)});
        return asked;
    };
    return start_metrics({address, agents, options.key ? &*options.key : nullptr});
}

int run(const AgentOptions& options, int signals, Reload& reload) {
    FileLock election;
    const int exit_code = serve(options, signals, reload, election);
    const std::string path = options.engine.root + "/" + options.engine.job;
    const FileHandle folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    // The tasks' last one holds the election and takes the directory away; where they were killed, there is none.
    if (folder && !options.while_locked.empty()) {
        if (auto of_tasks = FileLock::open(folder.get(), kElectionName);
            of_tasks && of_tasks->take(false) == FileLock::Answer::kTaken)
            election = std::move(*of_tasks);
    }
    if (folder && election.is_named(folder.get(), kElectionName))
        remove_job_folder(folder.get(), path);
    return exit_code;
}

/// What the resident agent's child is to be.
AgentOptions options_of(const ResidentJob& job, const AgentOptions& residents) {
    AgentOptions options = residents;
    options.engine.job = job.name;
    options.endpoint = default_endpoint(options.engine.root, job.name);
    options.while_used = true;
    options.metrics.clear();
    options.ready_fd = -1;  // it has been told
    const bool is_slurms = job.name.find_first_not_of("0123456789") == std::string::npos;
    if (is_slurms) options.rendezvous = job.name;
    if (!job.wish.member.empty()) options.rendezvous = job.wish.member;
    if (!job.wish.node.empty()) options.engine.node = job.wish.node;
    if (!job.wish.output_root.empty()) options.engine.output_root = job.wish.output_root;
    return options;
}

void reload_resident(Reload& reload, MetricsKeeper& metrics) {
    if (!reload.read_again()) return;
    if (auto moved = metrics.move_to(reload.options().metrics); !moved)
        spdlog::error("reload: {}; {}", moved.error().message,
                      metrics.address().empty() ? "there are no metrics"
                                                : "metrics stay at " + metrics.address());
}

/// One that serves a single job has threads by then and can't fork another.
void say_when_metrics_end(pid_t metrics) {
    if (metrics == 0) return;
    std::thread([metrics] {
        if (::waitpid(metrics, nullptr, 0) == metrics)
            spdlog::warn("the metrics' process has ended; start the agent again to have them");
    }).detach();
}

int run_resident(int signals, Reload& reload) {
    std::optional<ResidentJob> job;
    {
        const AgentOptions& options = reload.options();
        MetricsKeeper metrics(
            [&](const std::string& address) { return serve_metrics(options, address); });
        if (auto served = metrics.move_to(options.metrics); !served) return fail(served.error());
        auto resident = Resident::open(options.engine.root, options.engine.node);
        if (!resident) return fail(resident.error());
        sigset_t hangup;
        sigemptyset(&hangup);
        sigaddset(&hangup, SIGHUP);
        const FileHandle reloads(::signalfd(-1, &hangup, SFD_CLOEXEC | SFD_NONBLOCK));
        for (const std::string& each : unwritable_places(options)) spdlog::warn(each);
        say_ready(options.ready_fd);
        spdlog::info("resident agent of {}", options.engine.root);
        auto served = resident->serve(
            signals, reloads.get(), [&] { reload_resident(reload, metrics); },
            [&] { metrics.look(); });
        if (!served) return fail(served.error());
        job = std::move(*served);
    }  // In a child nothing of it is left, its lock least of all.
    return job ? run(options_of(*job, reload.options()), signals, reload) : 0;
}

}  // namespace

int main(int argc, char** argv) {
    int exit_code = 0;
    const auto options = parse_options(argc, argv, exit_code);
    if (!options) return exit_code;
    if (options->ready_fd >= 0 && ::fcntl(options->ready_fd, F_SETFD, FD_CLOEXEC) != 0) {
        return fail({ErrorCode::kUsage, "--ready-fd " + std::to_string(options->ready_fd) +
                                            " is not open; pass the write end of a pipe"});
    }
    Reload reload(argc, argv, *options);
    const int signals = end_signals(!options->while_locked.empty(), reload.wanted());
    if (signals < 0)
        return fail({ErrorCode::kInternal,
                     "take signals: no descriptor left; raise the limit of open files"});
    start_log(options->log_level);
    be_first_to_go();
    allow_many_descriptors();
    if (options->all) return run_resident(signals, reload);
    const auto metrics = serve_metrics(*options, options->metrics);
    if (!metrics) return fail(metrics.error());
    say_when_metrics_end(*metrics);
    return run(*options, signals, reload);
}
