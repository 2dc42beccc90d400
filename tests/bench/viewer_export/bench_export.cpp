// What exports cost, beside `uftrace dump --chrome` of as many events. Run by hand: bench_export [RANGES] [DIRECTORY] [KIND] [UFTRACE_DATA]
// KIND: ranges, kineto (all of Kineto's fields) or both.
//
// Dumps are made first (big_dump.hpp, gpu_job.hpp). Rounds in turn: each export twice (its control), uftrace twice where it has data; processor
// time, median of the rounds. Prints events a second, bytes an event, ratios with their controls, and how much memory an export takes, which fails where that
// is more than it may.
#include <fcntl.h>
#include <malloc.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "../../unit/viewer_export/big_dump.hpp"
#include "../../unit/viewer_export/files.hpp"
#include "../../unit/viewer_export/gpu_job.hpp"
#include "viewer_export/load/job_loader.hpp"
#include "viewer_export/out/table.hpp"
#include "viewer_export/out/trace.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export;

extern char** environ;

namespace {

constexpr int kRounds = 5;
constexpr int kGpuSlicesAStep = 15;
constexpr double kMostGrownMb = 6;  // buffers, and texts that a row has told: as much for any job

double seconds(const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// @return its processor time; negative: it failed
double uftrace_seconds(const std::string& data, const std::string& out) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    std::string words[] = {"uftrace", "dump", "--chrome", "--no-pager", "-d", data};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t pid = 0;
    const int failed = posix_spawnp(&pid, "uftrace", &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    rusage used{};
    if (failed != 0 || wait4(pid, &status, 0, &used) != pid || status != 0) return -1;
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

std::uint64_t events_of(const std::string& chrome) {
    std::ifstream file(chrome);
    std::uint64_t events = 0;
    for (std::string line; std::getline(file, line);)
        events += line.find("\"ph\":\"B\"") != std::string::npos ||
                  line.find("\"ph\":\"E\"") != std::string::npos;
    return events;
}

double megabytes(const char* what) {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with(what))
            return std::strtod(line.c_str() + std::string(what).size() + 1, nullptr) / 1024;
    }
    return 0;
}

using Write = decltype(&write_chrome);

struct Measured {
    std::uint64_t events = 0;
    std::uint64_t bytes = 0;
    double rate = 0;     ///< M events a second
    double control = 0;  ///< the same again / the first time
    double grown_mb = 0;
};

Measured measured(const model::Job& job, Write write, const std::filesystem::path& path) {
    Measured result;
    std::vector<double> first;
    std::vector<double> controls;
    // What loading has left free would hide what an export takes. The peak is set back: what comes is the export's.
    malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << "5";
    const double before = megabytes("VmRSS:");
    for (int round = 0; round < kRounds; ++round) {
        double took[2];
        for (double& each : took) {
            const double begin = cpu_seconds();
            const auto counts = write(job, path, {});
            each = cpu_seconds() - begin;
            if (!counts) std::exit(1);
            result.events = counts->slices + counts->instants + counts->counters + counts->derived +
                            2 * (counts->launches + counts->fwdbwd);
            result.bytes = counts->bytes;
        }
        first.push_back(took[0]);
        controls.push_back(took[1] / took[0]);
    }
    result.rate = static_cast<double>(result.events) / median(first) / 1e6;
    result.control = median(controls);
    result.grown_mb = megabytes("VmHWM:") - before;
    std::filesystem::remove(path);
    return result;
}

void print(const char* what, const Measured& of) {
    std::printf("%-34s %6.2f M events/s (control %.3f), %6.1f B an event, +%.0f MB\n", what,
                of.rate, of.control, static_cast<double>(of.bytes) / static_cast<double>(of.events),
                of.grown_mb);
}

double uftrace(const std::string& data, const std::filesystem::path& directory) {
    const std::string out = (directory / "uftrace.json").string();
    std::vector<double> first;
    std::vector<double> controls;
    for (int round = 0; round < kRounds; ++round) {
        const double one = uftrace_seconds(data, out);
        const double two = uftrace_seconds(data, out);
        if (one <= 0 || two <= 0) return 0;
        first.push_back(one);
        controls.push_back(two / one);
    }
    const std::uint64_t events = events_of(out);
    std::filesystem::remove(out);
    const double rate = static_cast<double>(events) / median(first) / 1e6;
    std::printf("%-34s %6.2f M events/s (control %.3f), %lu begins and ends\n",
                "uftrace dump --chrome", rate, median(controls), events);
    return rate;
}

}  // namespace

int main(int argc, char** argv) {
    const std::uint64_t ranges = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
    const TemporaryDirectory temporary;
    const std::filesystem::path directory =
        argc > 2 ? std::filesystem::path(argv[2]) : temporary.path();
    const std::string wanted = argc > 3 ? argv[3] : "both";
    const double peer = argc > 4 ? uftrace(argv[4], directory) : 0;
    const std::filesystem::path dumps = directory / "dumps";
    bool failed = false;
    for (const std::string kind : {"ranges", "kineto"}) {
        if (wanted != "both" && wanted != kind) continue;
        std::filesystem::create_directories(dumps);
        const bool gpu = kind != "ranges";
        if (gpu) {
            write_gpu_job(dumps, 1, static_cast<int>(ranges / kGpuSlicesAStep));
        } else {
            make_big_dump(ranges, false, dumps / "bench.rsd");
        }
        const double begin = cpu_seconds();
        const auto job = load_job({{dumps}, true, {}});
        if (!job) return 1;
        const auto events = static_cast<double>(job->totals.events) / 1e6;
        const double loaded = cpu_seconds();
        (void)render_table(*job, {});
        std::printf("%s: %.1f M events, loaded at %.2f M/s, a table at %.2f M/s\n",
                    gpu ? "all of Kineto's fields" : "ranges", events, events / (loaded - begin),
                    events / (cpu_seconds() - loaded));
        const Measured json = measured(*job, &write_chrome, directory / "bench.json");
        const Measured packets = measured(*job, &write_perfetto, directory / "bench.pftrace");
        print("  .json", json);
        print("  .pftrace", packets);
        if (!gpu) print("  .json.gz", measured(*job, &write_chrome, directory / "bench.json.gz"));
        std::printf("  .pftrace / .json, bytes            %6.3f (at most 0.27)\n",
                    static_cast<double>(packets.bytes) / static_cast<double>(json.bytes));
        const double grown = std::max(json.grown_mb, packets.grown_mb);
        const bool flat = grown <= kMostGrownMb;
        std::printf("  memory beyond the job's            %6.0f MB (at most %.0f)%s\n", grown,
                    kMostGrownMb, flat ? "" : ": it grows");
        failed |= !flat;
        if (peer > 0)
            std::printf("  .json / uftrace, events a second   %6.2f (at least %s)\n",
                        json.rate / peer, gpu ? "2" : "3.5");
        std::filesystem::remove_all(dumps);
    }
    return failed ? 1 : 0;
}
