#include "agent/capture/totals.hpp"

#include <algorithm>

#include "agent/capture/engine_impl.hpp"

namespace ringside::agent {

void add(Totals& totals, const TrackedProcess& process) {
    totals.events += process.drainer.kept();
    totals.lost += process.drainer.lost() + process.passed_over();
    totals.bytes += process.drainer.bytes();
    totals.iterations += process.drainer.pace().count();
}

void EngineImpl::set_memory(const MemoryOptions& memory) {
    const Turn turn(*this);
    table_.set_memory(memory);
}

Totals EngineImpl::totals() const {
    Totals totals = ended_;
    for (const auto& process : table_.all()) {
        if (capture_ && process->in_capture) add(totals, *process);
    }
    return totals;
}

std::int64_t EngineImpl::iteration_ns(const TrackedProcess& process) const {
    const std::uint64_t ticks = process.drainer.pace().length_ticks();
    if (!capture_ || !process.in_capture || ticks == 0) return -1;
    constexpr double kMost = 9e18;  // the job's own words
    return static_cast<std::int64_t>(
        std::min(kMost, static_cast<double>(ticks) * 1e9 / calibration_.ticks_per_second));
}

}  // namespace ringside::agent
