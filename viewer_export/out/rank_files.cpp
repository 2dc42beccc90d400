#include "viewer_export/out/rank_files.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "viewer_export/out/trace_plan.hpp"

namespace ringside::viewer_export {

namespace {

using model::Index;

std::vector<std::uint64_t> events_of(const model::Job& job) {
    std::vector<std::uint64_t> events(job.processes.size(), 0);
    for (const model::Lane& lane : job.lanes) events[lane.process] += lane.ranges.size();
    for (const model::AsyncRange& range : job.asyncs) ++events[job.lanes[range.lane].process];
    for (const model::Value& value : job.values) ++events[job.lanes[value.lane].process];
    for (const model::Half& half : job.halves) events[half.process] += half.shown();
    for (const model::GpuCall& call : job.gpu_calls) ++events[call.process];
    for (const model::GpuWork& work : job.gpu_work) ++events[work.process];
    return events;
}

/// A file's name has no slash in it.
std::string as_file_name(std::string text) {
    std::replace(text.begin(), text.end(), '/', '_');
    return text;
}

}  // namespace

std::vector<RankFile> rank_files(const model::Job& job) {
    const std::vector<std::uint64_t> events = events_of(job);
    using Key = std::tuple<std::int32_t, Index, Index>;  // rank, node, process of no rank
    std::map<Key, std::vector<Index>> files;
    for (Index i = 0; i < job.processes.size(); ++i) {
        const model::Process& process = job.processes[i];
        if (events[i] > 0)
            files[{process.rank, process.node, process.rank < 0 ? i : 0}].push_back(i);
    }
    const std::string number = std::to_string(trace::first_ns(job));
    std::set<std::string> used;
    std::vector<RankFile> result;
    for (const auto& [key, processes] : files) {
        const Index main =
            *std::max_element(processes.begin(), processes.end(),
                              [&](Index a, Index b) { return events[a] < events[b]; });
        const model::Process& process = job.processes[main];
        std::string worker = as_file_name(job.nodes[process.node].host);
        worker.append("_").append(std::to_string(process.pid));
        // Containers of one host may share its name and count pids alike.
        if (!used.insert(worker).second) {
            worker += "_" + std::to_string(main);
            used.insert(worker);
        }
        RankFile file{worker.append(".").append(number).append(".pt.trace.json"), {}};
        file.processes.resize(job.processes.size(), false);
        for (const Index each : processes) file.processes[each] = true;
        result.push_back(std::move(file));
    }
    return result;
}

}  // namespace ringside::viewer_export
