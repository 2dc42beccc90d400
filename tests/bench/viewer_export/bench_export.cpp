// How fast dumps become a model, a table and a Chrome trace. Run by hand: bench_export [RANGES] [DIRECTORY]
//
// The dump is made first (big_dump.hpp). Prints events a second of each stage, medians of five.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../../unit/viewer_export/big_dump.hpp"
#include "../../unit/viewer_export/files.hpp"
#include "viewer_export/load/job_loader.hpp"
#include "viewer_export/out/chrome.hpp"
#include "viewer_export/out/table.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export;

namespace {

double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

template <class Run>
double median_seconds(Run&& run) {
    std::vector<double> seconds;
    for (int i = 0; i < 5; ++i) {
        const double begin = cpu_seconds();
        run();
        seconds.push_back(cpu_seconds() - begin);
    }
    std::sort(seconds.begin(), seconds.end());
    return seconds[2];
}

}  // namespace

int main(int argc, char** argv) {
    const std::uint64_t ranges = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
    TemporaryDirectory temporary;
    const std::filesystem::path directory =
        argc > 2 ? std::filesystem::path(argv[2]) : temporary.path();
    for (const bool operators : {false, true}) {
        make_big_dump(ranges, operators, directory / "bench.rsd");
        const LoadRequest request{{directory / "bench.rsd"}, true, {}};
        auto job = load_job(request);
        if (!job) {
            std::fprintf(stderr, "%s\n", job.error().message.c_str());
            return 1;
        }
        const auto events = static_cast<double>(job->totals.events);
        const double load = median_seconds([&] { job = load_job(request); });
        const double table = median_seconds([&] { (void)render_table(*job, {}); });
        std::uint64_t bytes = 0;
        const double chrome =
            median_seconds([&] { bytes = write_chrome(*job, directory / "bench.json")->bytes; });
        const double null =
            median_seconds([&] { (void)write_chrome(*job, directory / "bench.json"); });
        std::printf(
            "%-30s load %6.2f  table %6.2f  chrome %6.2f M events/s (again %.2f), %.1f B an "
            "event\n",
            operators ? "a quarter operators" : "ranges", events / load / 1e6, events / table / 1e6,
            events / chrome / 1e6, events / null / 1e6, static_cast<double>(bytes) / events);
    }
    return 0;
}
