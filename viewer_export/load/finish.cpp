// From what was read to a model: requests of events, the ends of what has none, nanoseconds, sums.
#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "schema/segment.hpp"
#include "viewer_export/load/builder.hpp"
#include "viewer_export/model/rpc_tree.hpp"

namespace ringside::viewer_export::load {

using model::Context;
using model::End;
using schema::ContextState;

namespace {

std::uint64_t ticks_of(std::int64_t field) {
    return static_cast<std::uint64_t>(field);
}

/// Outer before inner: of two ranges with one begin the longer one, of two equal ones the one that was written later.
bool outer_first(const model::Range& a, const model::Range& b) {
    if (a.begin_ns != b.begin_ns) return ticks_of(a.begin_ns) < ticks_of(b.begin_ns);
    const bool a_ended = a.position != model::kNoPosition;
    const bool b_ended = b.position != model::kNoPosition;
    if (a_ended != b_ended) return b_ended;
    if (!a_ended) return false;
    if (a.end_ns != b.end_ns) return ticks_of(a.end_ns) > ticks_of(b.end_ns);
    return a.position > b.position;
}

}  // namespace

model::Job JobBuilder::finish(const JobIndexFile* index, bool corrected) {
    for (Index i = 0; i < job_.processes.size(); ++i) pair_process(i);
    finish_lanes();
    finish_events();
    settle_gpu_devices();
    find_gpu_calls();
    settle_ends();
    find_servings();
    leave_out_events();
    leave_out_gpu();
    tie_gpu_calls();
    tie_gpu_waits();
    if (index != nullptr) apply_nodes(index->index());
    to_nanoseconds(corrected && index != nullptr);
    sort_values();
    if (index != nullptr) {
        apply_calls(*index);
        apply_verdicts(index->index());
    }
    call_the_rest();
    leave_out_calls();
    mark_fetches();
    sum_up();
    return std::move(job_);
}

Index JobBuilder::request_of(Index process, Context context) {
    if (context.state == ContextState::kUnknown) return model::kUnknownRequest;
    if (context.state != ContextState::kServing) return kNone;
    const auto [entry, added] = processes_[process].server_halves.try_emplace(
        context.key, static_cast<Index>(job_.halves.size()));
    if (added) {
        // It is being served, but its begin lies before the capture: a half without a record, that only gives its events a request.
        model::Half half{};
        half.position = model::kNoPosition;
        half.key = context.key;
        half.name = half.module = half.peer = half.self = kNone;
        half.process = process;
        half.lane = half.end_lane = half.call = kNone;
        half.self_id = half.peer_id = -1;
        half.side = schema::RpcSide::kServer;
        half.end = End::kOpen;
        job_.halves.push_back(half);
    }
    return entry->second;
}

void JobBuilder::add_open_ranges(Index lane_index) {
    model::Lane& lane = job_.lanes[lane_index];
    const LaneState& state = lanes_[lane_index];
    const std::size_t written = lane.ranges.size();
    for (const fbs::OpenRange& open : state.open) {
        const auto header = schema::RecordHeader::unpack(open.what());
        if (header.name == schema::kInlineName) continue;
        const Index name = name_of(lane.process, header.name.value);
        const auto begin = static_cast<std::int64_t>(open.begin());
        const bool ended = std::any_of(lane.ranges.begin(),
                                       lane.ranges.begin() + static_cast<std::ptrdiff_t>(written),
                                       [&](const model::Range& range) {
                                           return range.begin_ns == begin && range.name == name;
                                       });
        if (ended) continue;
        const bool is_operator = header.kind == schema::RecordKind::kOperator;
        // Torch's is the name of the input shapes, which the dump has only once the operator has ended.
        const bool of_torch = schema::record_source(header.flags) == schema::SourceId::kTorch;
        lane.ranges.push_back({begin, begin, model::kNoPosition,
                               of_torch ? 0 : static_cast<std::int64_t>(open.argument()), name,
                               kNone, 0, 0, schema::record_source(header.flags),
                               schema::record_detail(header.flags), End::kOpen, is_operator,
                               attributes_of(lane.process, header.name.value)});
    }
}

void JobBuilder::finish_lanes() {
    const std::uint64_t all = job_.ranges();
    std::uint64_t done = 0;
    for (Index i = 0; i < job_.lanes.size(); ++i) {
        if (tell_) tell_("putting events in order", done, all);
        done += job_.lanes[i].ranges.size();
        finish_lane(i);
    }
}

void JobBuilder::finish_lane(Index lane_index) {
    add_open_ranges(lane_index);
    model::Lane& lane = job_.lanes[lane_index];
    LaneState& state = lanes_[lane_index];
    // Lost at its end: whatever is still open there may have begun after a switch that was lost.
    if (lane.account.lost > 0 && lane.account.last_lost_ticks > state.last_ticks) {
        state.contexts.switch_to(state.last_ticks, state.blocks_end, {ContextState::kUnknown, 0});
    }
    if (!std::is_sorted(lane.ranges.begin(), lane.ranges.end(), outer_first)) {
        std::stable_sort(lane.ranges.begin(), lane.ranges.end(), outer_first);
    }
    model::ContextTrack::Cursor cursor(state.contexts);
    Context last{};
    Index request = kNone;
    for (model::Range& range : lane.ranges) {
        const Context context = cursor.at(ticks_of(range.begin_ns), range.position);
        if (context != last) {
            last = context;
            request = request_of(lane.process, context);
        }
        range.request = request;
    }
    model::Process& process = job_.processes[lane.process];
    process.last_ticks = std::max(process.last_ticks, state.last_ticks);
}

void JobBuilder::finish_events() {
    const auto request_at = [&](Index lane, std::int64_t ticks, std::uint64_t position) {
        return request_of(job_.lanes[lane].process,
                          lanes_[lane].contexts.at(ticks_of(ticks), position));
    };
    for (model::AsyncRange& range : job_.asyncs) {
        range.request = request_at(range.lane, range.begin_ns, range.position);
    }
    for (model::Value& value : job_.values) {
        value.request = request_at(value.lane, value.ns, value.position);
    }
    // Calls made while serving a request whose half is not in the dump: it gets its stand-in here, so that they have a parent.
    for (Index i = 0, count = static_cast<Index>(job_.halves.size()); i < count; ++i) {
        const model::Half& half = job_.halves[i];
        if (!half.server() && half.parent_key != 0) {
            request_of(half.process, {ContextState::kServing, half.parent_key});
        }
    }
}

void JobBuilder::settle_ends() {
    // How far each process was seen: to its death, or to the capture's stop; in a dump that was cut short to its last record.
    std::vector<std::uint64_t> evidence(job_.processes.size());
    for (Index i = 0; i < job_.processes.size(); ++i) {
        const model::Process& process = job_.processes[i];
        const std::uint64_t stop = job_.nodes[process.node].stop_ticks;
        std::uint64_t seen =
            process.ended && process.end_ticks != 0 ? process.end_ticks : process.last_ticks;
        if (stop != 0) seen = std::min(seen, stop);
        evidence[i] = std::max(seen, process.last_ticks);
    }
    const auto settle = [&](auto& event, Index process) {
        if (event.end == End::kEnded) return;
        if (job_.processes[process].fate == model::Fate::kKilled) event.end = End::kUnfinished;
        event.end_ns =
            static_cast<std::int64_t>(std::max(ticks_of(event.begin_ns), evidence[process]));
    };
    for (model::Lane& lane : job_.lanes) {
        for (model::Range& range : lane.ranges) settle(range, lane.process);
    }
    for (model::AsyncRange& range : job_.asyncs) settle(range, job_.lanes[range.lane].process);
    for (model::Half& half : job_.halves) settle(half, half.process);
    for (Index i = 0; i < job_.processes.size(); ++i) {
        job_.processes[i].last_evidence_ns = static_cast<std::int64_t>(evidence[i]);
    }
}

void JobBuilder::to_nanoseconds(bool corrected) {
    job_.corrected = corrected;
    const auto convert = [&](Index node_index, std::int64_t& field) {
        const model::Node& node = job_.nodes[node_index];
        field = node.calibration.node_ns(ticks_of(field));
        if (corrected && node.has_clock) field = node.clock.leader_ns(field);
    };
    const auto node_of_lane = [&](Index lane) { return job_.process_of_lane(lane).node; };
    for (model::Lane& lane : job_.lanes) {
        const Index node = job_.process_of(lane).node;
        for (model::Range& range : lane.ranges) {
            convert(node, range.begin_ns);
            convert(node, range.end_ns);
        }
    }
    for (model::AsyncRange& range : job_.asyncs) {
        convert(node_of_lane(range.lane), range.begin_ns);
        convert(node_of_lane(range.lane), range.end_ns);
    }
    for (model::Value& value : job_.values) convert(node_of_lane(value.lane), value.ns);
    for (model::Half& half : job_.halves) {
        if (half.position == model::kNoPosition) continue;
        convert(job_.processes[half.process].node, half.begin_ns);
        convert(job_.processes[half.process].node, half.end_ns);
    }
    for (model::Serving& serving : job_.servings) {
        convert(node_of_lane(serving.lane), serving.begin_ns);
        convert(node_of_lane(serving.lane), serving.end_ns);
    }
    for (model::GpuCall& call : job_.gpu_calls) {
        convert(job_.processes[call.process].node, call.begin_ns);
        convert(job_.processes[call.process].node, call.end_ns);
    }
    for (model::GpuWork& work : job_.gpu_work) {
        const Index node = job_.processes[work.process].node;
        convert(node, work.begin_ns);
        convert(node, work.end_ns);
        if (work.queued_ns != 0) convert(node, work.queued_ns);
    }
    for (model::Process& process : job_.processes) convert(process.node, process.last_evidence_ns);
}

/// By process; of each first the boundaries, by name and time (model/steps.hpp). The rest stays as it was written.
void JobBuilder::sort_values() {
    const auto key = [&](const model::Value& value) {
        const bool boundary = value.kind == schema::RecordKind::kIteration;
        return std::tuple(job_.lanes[value.lane].process, !boundary, boundary ? value.name : 0,
                          boundary ? value.ns : 0);
    };
    std::stable_sort(job_.values.begin(), job_.values.end(),
                     [&](const model::Value& a, const model::Value& b) { return key(a) < key(b); });
}

void JobBuilder::mark_fetches() {
    // torch fires a range of its own around to_here(): with it, the fetch's half is a second witness of one thing. It has a name only
    // where the job runs torch's profiler; the nameless one is given it here.
    const auto may_hold_fetch = [&](const model::Range& range) {
        const std::string& name = job_.names[range.name];
        const bool nameless = name == model::kUnnamed && range.source == schema::SourceId::kTorch &&
                              range.detail == static_cast<std::uint8_t>(schema::TorchScope::kUser);
        return nameless || name.starts_with("to_here#");
    };
    std::unordered_map<Index, std::vector<model::Half*>> fetches;
    for (model::Half& half : job_.halves) {
        if (half.lane != kNone && half.mode == schema::RpcMode::kFetch && !half.server()) {
            fetches[half.lane].push_back(&half);
        }
    }
    for (auto& [lane, halves] : fetches) {
        std::vector<model::Range*> around;
        for (model::Range& range : job_.lanes[lane].ranges) {
            if (may_hold_fetch(range)) around.push_back(&range);
        }
        for (model::Half* half : halves) {
            // Such ranges of one thread don't nest, so only the last one that began before can hold it.
            const auto after = std::partition_point(
                around.begin(), around.end(),
                [&](const model::Range* range) { return range->begin_ns <= half->begin_ns; });
            if (after == around.begin() || half->begin_ns > (*(after - 1))->end_ns) continue;
            half->inside_fetch_range = true;
            model::Range& range = **(after - 1);
            if (job_.names[range.name] == model::kUnnamed) {
                range.name = job_.names.add(
                    model::fetch_name(job_.names[half->self], job_.names[half->peer]));
            }
        }
    }
}

void JobBuilder::sum_up() {
    model::Totals& totals = job_.totals;
    const auto count = [&](End end) {
        if (end == End::kOpen) ++totals.open;
        if (end == End::kUnfinished) ++totals.unfinished;
    };
    for (const model::Lane& lane : job_.lanes) {
        totals.ranges += lane.ranges.size();
        totals.written += lane.account.written;
        totals.outside += lane.account.outside;
        totals.lost += lane.account.lost;
        for (const model::Range& range : lane.ranges) count(range.end);
    }
    using schema::Loss;
    for (const model::Process& process : job_.processes) {
        for (const Loss loss : {Loss::kStackTooDeep, Loss::kTableFull, Loss::kLaneRefused,
                                Loss::kReentered, Loss::kGpuDropped}) {
            const auto at = static_cast<std::size_t>(loss);
            if (at < process.losses.size()) totals.passed_over += process.losses[at];
        }
    }
    totals.passed_over += totals.untimed;
    std::uint64_t halves = 0;
    for (const model::AsyncRange& range : job_.asyncs) count(range.end);
    for (const model::Half& half : job_.halves) {
        if (!half.shown()) continue;
        ++halves;
        count(half.end);
    }
    totals.events = totals.ranges + job_.asyncs.size() + halves + job_.values.size() +
                    job_.gpu_calls.size() + job_.gpu_work.size();
    for (const model::Call& call : job_.calls) {
        if (!model::is_real(job_, call)) continue;
        totals.joined_requests += call.state == model::CallState::kJoined && call.both();
        totals.joined_replies += model::reply_joined(job_, call);
        totals.orphans += call.state == model::CallState::kOrphan;
        totals.cut += call.state == model::CallState::kCut;
        totals.unjoined += call.state == model::CallState::kUnjoined;
        totals.calls_unfinished += call.unfinished;
    }
}

}  // namespace ringside::viewer_export::load
