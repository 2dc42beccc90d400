#include "agent/capture/iterations.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace ringside::agent {
namespace {

/// Who is parent or child of a process that has iterations.
class Families {
public:
    void add(const TrackedProcess& process) {
        const std::uint64_t pid_namespace = process.id.pid_namespace;
        have_.insert({pid_namespace, process.id.pid});
        parents_.insert({pid_namespace, static_cast<std::uint32_t>(process.facts.parent_pid)});
    }
    bool beside(const TrackedProcess& process) const {
        const std::uint64_t pid_namespace = process.id.pid_namespace;
        const auto parent = static_cast<std::uint32_t>(process.facts.parent_pid);
        return have_.contains({pid_namespace, parent}) ||
               parents_.contains({pid_namespace, process.id.pid});
    }

private:
    using Pid = std::pair<std::uint64_t, std::uint32_t>;
    std::set<Pid> have_, parents_;
};

}  // namespace

IterationProgress iteration_progress(const std::vector<TrackedProcess*>& processes,
                                     const IterationWish& wish, std::uint64_t start_ticks,
                                     const Calibration& calibration) {
    IterationProgress progress;
    Families families;
    std::vector<const TrackedProcess*> silent;
    const std::int64_t start_ns = calibration.node_ns({start_ticks}).value;
    for (const TrackedProcess* process : processes) {
        const IterationsSeen seen = process->drainer.iterations().seen();
        if (seen.shown) families.add(*process);
        if (seen.begun && seen.count == wish.count) {
            ++progress.done;
            const std::int64_t took = calibration.node_ns({seen.end_ticks}).value - start_ns;
            progress.slowest_ns = std::max(progress.slowest_ns, took);
        } else if (seen.shown && process->alive()) {
            progress.least =
                progress.under_way == 0 ? seen.count : std::min(progress.least, seen.count);
            ++progress.under_way;
        } else if (seen.shown) {
            ++progress.ended;
        } else if (process->has_framework()) {
            silent.push_back(process);
        }
    }
    for (const TrackedProcess* process : silent) {
        if (!process->alive()) {
            ++progress.ended;
        } else if (!families.beside(*process)) {
            ++progress.none;
        }
    }
    return progress;
}

void settle_iterations(const std::vector<TrackedProcess*>& processes, const IterationWish& wish) {
    if (wish.count == 0) return;
    Families families;
    std::vector<TrackedProcess*> without;
    std::uint64_t first_begin = ~0ull, last_end = 0;
    for (TrackedProcess* process : processes) {
        const IterationsSeen seen = process->drainer.iterations().seen();
        process->iterations.reset();
        if (!seen.shown && !process->has_framework()) continue;
        process->iterations = IterationReport{
            seen.name, wish.count, seen.count, seen.first, seen.begin_ticks, seen.end_ticks, false};
        if (!seen.begun) {
            without.push_back(process);
            continue;
        }
        families.add(*process);
        first_begin = std::min(first_begin, seen.begin_ticks);
        last_end = std::max(last_end, seen.end_ticks);
    }
    for (TrackedProcess* process : without) {
        if (first_begin < last_end) {
            process->iterations->begin_ticks = first_begin;
            process->iterations->end_ticks = last_end;
        }
        process->iterations->beside =
            process->iterations->name.empty() && families.beside(*process);
    }
}

}  // namespace ringside::agent
