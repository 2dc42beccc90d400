#include "viewer_export/model/steps.hpp"

#include <map>
#include <utility>

namespace ringside::viewer_export::model {

std::vector<Steps> steps_of(const Job& job) {
    std::vector<Steps> all;
    std::map<Index, std::pair<std::size_t, Index>> chosen;  // by process: how good, and its name
    const auto add = [&](Index process, Index first, Index end) {
        const Index name = job.values[first].name;
        const auto& asked = job.processes[process].iterations;
        const bool sought = asked && asked->name == job.names[name];
        const std::size_t rank = sought ? job.values.size() + 1 : end - first;
        auto& best = chosen[process];
        if (rank > best.first) best = {rank, name};
        // The n-th boundary ends step n - 1, counted from 0 as torch does: between it and the next lies step n.
        if (end - first > 1) all.push_back({process, name, false, first, end - first - 1});
    };
    const auto kind_of = [&](const Value& value) {
        return std::pair(job.lanes[value.lane].process, value.name);
    };
    const auto end = static_cast<Index>(job.values.size());
    for (Index first = 0, next = 0; first < end; first = next) {
        next = first + 1;
        if (job.values[first].kind != schema::RecordKind::kIteration) continue;
        while (next < end && job.values[next].kind == schema::RecordKind::kIteration &&
               kind_of(job.values[next]) == kind_of(job.values[first]))
            ++next;
        add(job.lanes[job.values[first].lane].process, first, next);
    }
    for (Steps& steps : all) steps.chosen = chosen[steps.process].second == steps.boundary;
    return all;
}

}  // namespace ringside::viewer_export::model
