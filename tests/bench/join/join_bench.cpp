// join_bench make DIR NODES HALVES [MESSAGES]: synthetic dumps, of which the part MESSAGES is no requests. join_bench join DIR: joins them into an index beside them. join_bench read DIR:
// the control, reads the same records and drops them. Each prints one JSON object; times are the process's own processor time.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "synthetic_dumps.hpp"
#include "tools/ringside/offline_join.hpp"
#include "viewer_export/load/job_loader.hpp"
#include "viewer_export/load/rpc_records.hpp"

namespace fs = std::filesystem;
using namespace ringside;

namespace {

double cpu_seconds() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

double wall_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// Of this process and its files' pages, MB.
double peak_mb() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return static_cast<double>(used.ru_maxrss) / 1024;
}

int make(int argc, char** argv) {
    if (argc < 5) return 2;
    tests::SyntheticJob job;
    job.nodes = static_cast<std::uint32_t>(std::strtoul(argv[3], nullptr, 10));
    job.halves = std::strtoull(argv[4], nullptr, 10);
    if (argc > 5) job.messages = std::strtod(argv[5], nullptr);
    job.skew_ns = 50'000'000;
    fs::create_directories(argv[2]);
    const auto truth = tests::write_synthetic(job, argv[2]);
    std::printf("{\"halves\": %llu, \"whole\": %llu}\n",
                static_cast<unsigned long long>(truth.halves),
                static_cast<unsigned long long>(truth.whole));
    return 0;
}

int join(const std::vector<fs::path>& dumps, const std::string& directory) {
    const double cpu = cpu_seconds();
    const double wall = wall_seconds();
    auto index = agent::IndexWriter::create(directory);
    if (!index) return 1;
    const auto joined = tools::join_offline(dumps, true, **index);
    if (!joined) {
        std::fprintf(stderr, "%s\n", joined.error().message.c_str());
        return 1;
    }
    std::printf(
        "{\"halves\": %llu, \"joined\": %llu, \"most_open\": %zu, \"cpu\": %.4f, \"wall\": %.4f, "
        "\"peak_mb\": %.1f}\n",
        static_cast<unsigned long long>(joined->halves),
        static_cast<unsigned long long>(joined->counts.joined_requests), joined->most_open,
        cpu_seconds() - cpu, wall_seconds() - wall, peak_mb());
    return 0;
}

int read(const std::vector<fs::path>& dumps) {
    const double cpu = cpu_seconds();
    const double wall = wall_seconds();
    auto nodes = viewer_export::rpc_records(dumps);
    if (!nodes) return 1;
    std::uint64_t halves = 0;
    for (auto& node : *nodes) {
        node.scan([&](const viewer_export::RpcRecord& record) { halves += record.begin ? 1 : 0; });
    }
    std::printf("{\"halves\": %llu, \"cpu\": %.4f, \"wall\": %.4f, \"peak_mb\": %.1f}\n",
                static_cast<unsigned long long>(halves), cpu_seconds() - cpu, wall_seconds() - wall,
                peak_mb());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const std::string what = argv[1];
    if (what == "make") return make(argc, argv);
    const auto dumps = viewer_export::dumps_among({argv[2]});
    if (!dumps) return 1;
    return what == "join" ? join(*dumps, argv[2]) : read(*dumps);
}
