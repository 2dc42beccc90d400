#include "viewer_export/load/join_input.hpp"

#include <algorithm>

namespace ringside::viewer_export {

namespace {

JoinHalf join_half(const model::Job& job, const model::Half& half) {
    const model::Lane& lane = job.lanes[half.lane];
    JoinHalf result;
    result.process = job.processes[half.process].index;
    result.lane = lane.index;
    result.generation = lane.generation;
    result.position = half.position;
    result.server = half.server();
    result.span = half.span;
    result.trace = half.trace;
    result.key = half.key;
    result.parent_key = half.parent_key;
    result.begin_ticks = half.begin_ticks;
    result.end_ticks = half.end_ticks;
    result.ended = half.ended();
    result.status = half.status;
    result.self = job.names[half.self];
    result.peer = job.names[half.peer];
    result.wire_type = half.wire_type;
    result.wire_id = half.wire_id;
    return result;
}

}  // namespace

std::vector<JoinDump> join_input(const model::Job& job) {
    std::vector<JoinDump> dumps;
    std::vector<std::size_t> dump_of(job.nodes.size(), 0);
    std::vector<std::size_t> place(job.processes.size(), 0);
    for (model::Index i = 0; i < job.nodes.size(); ++i) {
        const model::Node& node = job.nodes[i];
        if (node.dump.empty()) continue;
        dump_of[i] = dumps.size();
        dumps.push_back({node.name,
                         node.host,
                         node.dump,
                         node.capture_id,
                         node.calibration,
                         node.start_ticks,
                         node.stop_ticks,
                         node.record_cost_ns,
                         {},
                         {}});
    }
    for (model::Index i = 0; i < job.processes.size(); ++i) {
        const model::Process& from = job.processes[i];
        std::vector<JoinProcess>& to = dumps[dump_of[from.node]].processes;
        place[i] = to.size();
        JoinProcess process;
        process.index = from.index;
        process.pid = from.pid;
        process.rank = from.rank;
        process.command = from.command();
        process.fate = from.fate;
        process.end_ticks = from.end_ticks;
        process.start_delay_ns = from.start_delay_ns;
        if (!from.worker_name.empty()) process.workers.push_back(from.worker_name);
        to.push_back(std::move(process));
    }
    const auto process_at = [&](model::Index process) -> JoinProcess& {
        return dumps[dump_of[job.processes[process].node]].processes[place[process]];
    };
    for (const model::Lane& lane : job.lanes) {
        JoinProcess& process = process_at(lane.process);
        process.events += lane.records;
        process.lost += lane.account.lost;
    }
    for (const model::Half& half : job.halves) {
        if (half.position == model::kNoPosition) continue;
        dumps[dump_of[job.processes[half.process].node]].halves.push_back(join_half(job, half));
        std::vector<std::string>& workers = process_at(half.process).workers;
        const std::string& self = job.names[half.self];
        if (!self.empty() && std::find(workers.begin(), workers.end(), self) == workers.end()) {
            workers.push_back(self);
        }
    }
    return dumps;
}

}  // namespace ringside::viewer_export
