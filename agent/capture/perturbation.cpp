#include "agent/capture/perturbation.hpp"

#include <algorithm>
#include <ctime>

namespace ringside::agent {
namespace {

/// How long a process was there between the capture's instants. Its birth is the process's own word: never beyond the instants.
std::uint64_t time_in_capture_ns(const TrackedProcess& process, const DumpFooter& footer,
                                 const Calibration& calibration) {
    const std::uint64_t from = std::max(footer.start_ticks, process.id.start_ticks);
    const std::uint64_t to =
        process.ending ? std::min(process.end_ticks, footer.stop_ticks) : footer.stop_ticks;
    if (to <= from) return 0;
    return static_cast<std::uint64_t>(calibration.node_ns({to}).value -
                                      calibration.node_ns({from}).value);
}

}  // namespace

std::int64_t own_cpu_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * schema::kNsPerSecond + now.tv_nsec;
}

Perturbation perturbation_of(const DumpFooter& footer,
                             const std::vector<std::unique_ptr<TrackedProcess>>& processes,
                             const Calibration& calibration) {
    Perturbation cost;
    for (const DumpFooter::Lane& lane : footer.lanes)
        cost.records += lane.account.kept + lane.account.lost;
    cost.cost_ns =
        static_cast<std::uint64_t>(static_cast<double>(cost.records) * footer.record_cost_ns);
    for (const auto& process : processes) {
        if (!process->in_capture) continue;
        cost.job_time_ns += time_in_capture_ns(*process, footer, calibration);
        cost.slowest_start_ns = std::max(cost.slowest_start_ns, process->start_delay_ns);
    }
    return cost;
}

}  // namespace ringside::agent
