// Many traced processes of one program, that are idle, or write a little at a time all at once. crowd.py preloads the shim and starts the agent.
//
//     crowd idle COUNT                      says "ready" and is idle until its input ends
//     crowd alone 1                         one of those
//     crowd bursts COUNT BURSTS RECORDS     each process writes RECORDS at a time, all of them at the same instants, a tenth of a second apart; prints
//                                           how long the records of each have waited for the agent
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "inject/sources/api/ringside.h"
#include "tests/bench/hot_path/own_lanes.hpp"

namespace ringside::bench {
namespace {

constexpr std::int64_t kPeriodNs = 100 * schema::kNsPerMillisecond;
constexpr std::int64_t kLookNs = 500'000;

std::int64_t now_ns() {
    return schema::read_clock(CLOCK_MONOTONIC).value;
}

void sleep_until(std::int64_t ns) {
    const timespec at{ns / schema::kNsPerSecond, ns % schema::kNsPerSecond};
    while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) != 0) {
    }
}

/// What the processes know of each other.
struct Common {
    std::atomic<int> done;
    std::atomic<std::int64_t> start_ns;  ///< of the first burst; 0: not yet
};

/// Processes that end with this one at the latest.
class Crowd {
public:
    /// @param life  what each does; it ends with it
    template <class Life>
    Crowd(int count, const Life& life) {
        for (int i = 0; i < count; ++i) {
            const pid_t pid = ::fork();
            if (pid < 0) give_up("fork: the limit of processes is too low");
            if (pid == 0) {
                ::prctl(PR_SET_PDEATHSIG, SIGKILL);
                life();
                ::_exit(0);
            }
            pids_.push_back(pid);
        }
    }
    ~Crowd() {
        for (const pid_t pid : pids_) ::kill(pid, SIGKILL);
        for (const pid_t pid : pids_) ::waitpid(pid, nullptr, 0);
    }
    Crowd(const Crowd&) = delete;
    Crowd& operator=(const Crowd&) = delete;
    const std::vector<pid_t>& pids() const { return pids_; }

private:
    std::vector<pid_t> pids_;
};

/// The records of one process and how long they wait: from when they were seen first to when the agent has taken them.
class Watched {
public:
    explicit Watched(OwnLane lane) : lane_(lane) {}

    /// @return whether all that it wrote is drained
    bool look(std::int64_t now) {
        const std::uint64_t written = lane_.written(), drained = lane_.drained();
        if (since_ != 0 && drained >= target_) {
            waits_.push_back(static_cast<double>(now - since_) / 1e6);
            since_ = 0;
        }
        if (since_ == 0 && written > drained) {
            since_ = now;
            target_ = written;
        }
        return written == drained;
    }

    void print() const {
        double sum = 0, longest = 0;
        for (const double wait : waits_) {
            sum += wait;
            longest = std::max(longest, wait);
        }
        std::printf("{\"waits\": %zu, \"mean_ms\": %.4f, \"longest_ms\": %.4f, \"lost\": %llu}",
                    waits_.size(), waits_.empty() ? 0 : sum / static_cast<double>(waits_.size()),
                    longest, static_cast<unsigned long long>(lane_.dropped()));
    }

private:
    OwnLane lane_;
    std::int64_t since_ = 0;
    std::uint64_t target_ = 0;
    std::vector<double> waits_{};
};

void write_pairs(long count) {
    for (long i = 0; i < count; ++i) {
        ringside_range_push("burst");
        ringside_range_pop();
    }
}

int idle(int count) {
    // Programs, each with a segment: a forked child makes none before it needs it.
    const Crowd crowd(count, [] { ::execl("/proc/self/exe", "crowd", "alone", "1", nullptr); });
    std::printf("ready\n");
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
    return 0;
}

int bursts(int count, int number, long records, const std::string& directory) {
    void* memory =
        ::mmap(nullptr, sizeof(Common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) give_up("map what the processes share: no memory");
    auto* common = new (memory) Common{};
    // Pipes: an atomic's wait() is for the threads of one process.
    int ready[2], go[2];
    if (::pipe(ready) != 0 || ::pipe(go) != 0) give_up("pipe: too many files are open");
    const Crowd crowd(count, [=] {
        ::close(go[1]);
        write_pairs(1);
        char byte = 0;
        if (::write(ready[1], &byte, 1) != 1 || ::read(go[0], &byte, 1) != 0) return;
        for (int i = 0; i < number; ++i) {
            sleep_until(common->start_ns + i * kPeriodNs);
            write_pairs(records);
        }
        ++common->done;
        for (;;) ::pause();
    });
    char byte = 0;
    for (int i = 0; i < count; ++i) {
        if (::read(ready[0], &byte, 1) != 1) give_up("wait for the processes: one has ended");
    }
    std::vector<Watched> all;
    for (const pid_t pid : crowd.pids())
        all.emplace_back(OwnSegment(directory, pid).lane_of(static_cast<std::uint32_t>(pid)));
    common->start_ns = now_ns() + kPeriodNs;
    ::close(go[1]);
    for (bool over = false; !over;) {
        sleep_until(now_ns() + kLookNs);
        // Before the looks: what was written until then is seen by them.
        over = common->done == count;
        for (Watched& one : all) over = one.look(now_ns()) && over;
    }
    std::printf("{\"processes\": [");
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (i != 0) std::printf(", ");
        all[i].print();
    }
    std::printf("]}\n");
    return 0;
}

}  // namespace
}  // namespace ringside::bench

int main(int count, char** arguments) {
    using namespace ringside::bench;
    const std::string mode = count > 2 ? arguments[1] : "";
    const int processes = count > 2 ? std::atoi(arguments[2]) : 0;
    if (mode == "alone") return ::pause();
    if (mode == "idle" && processes > 0) return idle(processes);
    if (mode == "bursts" && processes > 0 && count == 5)
        return bursts(processes, std::atoi(arguments[3]), std::atol(arguments[4]), job_directory());
    give_up("usage: crowd idle COUNT | bursts COUNT BURSTS RECORDS");
}
