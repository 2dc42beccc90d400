#include "viewer_export/out/trace_steps.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace ringside::viewer_export::trace {

using model::Index;

std::vector<Steps> steps_of(const model::Job& job, const std::vector<bool>& drawn, Tracks& tracks) {
    std::map<std::pair<Index, Index>, std::vector<const model::Value*>>
        boundaries;  // (process, name)
    for (const model::Value& value : job.values) {
        const Index process = job.lanes[value.lane].process;
        if (value.kind == schema::RecordKind::kIteration && drawn[process])
            boundaries[{process, value.name}].push_back(&value);
    }
    // Readers count steps by the name ProfilerStep#N, so only one kind of boundary a process may bear it: that of the iterations which were
    // asked for, else the most frequent.
    std::map<Index, std::pair<std::size_t, Index>> chosen;
    for (const auto& [key, list] : boundaries) {
        auto& best = chosen[key.first];
        const auto& asked = job.processes[key.first].iterations;
        const bool sought = asked && asked->name == job.names[key.second];
        const std::size_t rank = sought ? job.values.size() + 1 : list.size();
        if (rank > best.first) best = {rank, key.second};
    }
    std::vector<Steps> all;
    for (auto& [key, list] : boundaries) {
        if (list.size() < 2) continue;
        std::stable_sort(list.begin(), list.end(),
                         [](const auto* a, const auto* b) { return a->ns < b->ns; });
        const bool profiler = chosen[key.first].second == key.second;
        Steps steps{key.first,
                    key.second,
                    profiler,
                    tracks.add_row(key.first, profiler ? "iterations"
                                                       : "iterations of " + job.names[key.second]),
                    {}};
        // The n-th boundary ends step n - 1, counted from 0 as torch does: between it and the next lies step n.
        for (std::size_t i = 0; i + 1 < list.size(); ++i)
            steps.list.push_back({list[i]->ns, list[i + 1]->ns, list[i]->value});
        all.push_back(std::move(steps));
    }
    return all;
}

}  // namespace ringside::viewer_export::trace
