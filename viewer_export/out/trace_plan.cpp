#include "viewer_export/out/trace_plan.hpp"

#include <algorithm>
#include <limits>

namespace ringside::viewer_export::trace {

using model::Index;
using schema::RecordKind;

namespace {

std::vector<bool> all_or(const model::Job& job, const std::vector<bool>& processes) {
    return processes.empty() ? std::vector<bool>(job.processes.size(), true) : processes;
}

std::vector<model::Steps> kinds_of(const model::Job& job, const std::vector<bool>& drawn) {
    std::vector<model::Steps> kinds = model::steps_of(job);
    std::erase_if(kinds, [&](const model::Steps& each) { return !drawn[each.process]; });
    return kinds;
}

}  // namespace

std::int64_t first_ns(const model::Job& job, const std::vector<bool>& processes) {
    const std::vector<bool> drawn = all_or(job, processes);
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    const auto take = [&](Index process, std::int64_t ns) {
        if (drawn[process]) first = std::min(first, ns);
    };
    for (const model::Lane& lane : job.lanes) {
        if (!lane.ranges.empty()) take(lane.process, lane.ranges.front().begin_ns);
    }
    for (const model::AsyncRange& range : job.asyncs)
        take(job.lanes[range.lane].process, range.begin_ns);
    for (const model::Value& value : job.values) take(job.lanes[value.lane].process, value.ns);
    for (const model::Half& half : job.halves) {
        if (half.shown()) take(half.process, half.begin_ns);
    }
    for (const model::GpuCall& call : job.gpu_calls) take(call.process, call.begin_ns);
    for (const model::GpuWork& work : job.gpu_work) take(work.process, work.begin_ns);
    return first == std::numeric_limits<std::int64_t>::max() ? 0 : first;
}

Category category_of(const model::Range& range) {
    return model::is_users(range) ? Category::kUserAnnotation : Category::kCpuOp;
}

Category category_of(const model::GpuWork& work) {
    switch (work.kind) {
        case RecordKind::kGpuKernel:
            return Category::kKernel;
        case RecordKind::kGpuCopy:
            return Category::kCopy;
        case RecordKind::kGpuMemset:
            return Category::kMemset;
        case RecordKind::kGpuSync:
            return Category::kWait;
        case RecordKind::kGpuEvent:
            return Category::kCudaEvent;
        default:
            return Category::kOverhead;
    }
}

Plan::Plan(const model::Job& of, const TraceOptions& options)
    : job(of),
      drawn(all_or(of, options.processes)),
      base_ns(first_ns(of, drawn)),
      cuda_sync(options.cuda_sync),
      kinds(kinds_of(of, drawn)),
      tracks(of, drawn, kinds, cuda_sync),
      steps(steps_of(of, kinds, tracks)),
      arrows(of, drawn),
      collectives(of, drawn, arrows.next()),
      names(of),
      work_names(of.names) {
    for (const model::Lane& lane : job.lanes) {
        lane_first.push_back(ranges);
        ranges += lane.ranges.size();
    }
    elements = ranges + job.asyncs.size() + job.values.size() + job.halves.size() +
               job.gpu_calls.size() + job.gpu_work.size() + tracks.projections().size();
}

std::string_view end_text(const model::Job& job, model::End end, Index index) {
    if (end == model::End::kEnded) return {};
    const model::Process& process = job.processes[index];
    if (end == model::End::kUnfinished)
        return "no: its process died; drawn to the last evidence of it";
    if (!job.nodes[process.node].complete)
        return "no: the dump was cut short; drawn to its last record";
    return process.fate == model::Fate::kRunning ? "no: open when the capture stopped"
                                                 : "no: open when its process ended";
}

std::string_view status_text(schema::RpcStatus status) {
    switch (status) {
        case schema::RpcStatus::kOk:
            return "ok";
        case schema::RpcStatus::kError:
            return "error";
        case schema::RpcStatus::kTimeout:
            return "timeout";
        case schema::RpcStatus::kPeerGone:
            return "peer gone";
        case schema::RpcStatus::kCancelled:
            return "cancelled";
        case schema::RpcStatus::kSent:
            return "sent";
    }
    return "unknown";
}

std::string_view state_text(const model::Call& call) {
    using model::CallState;
    switch (call.state) {
        case CallState::kJoined:
            return call.unfinished ? "joined, unfinished" : "joined";
        case CallState::kOrphan:
            return "orphan";
        case CallState::kCut:
            return "cut";
        case CallState::kUnjoined:
            return "not joined (no job index)";
    }
    return "unknown";
}

}  // namespace ringside::viewer_export::trace
