// What is derived from several events: iterations as slices between boundaries, and arrows from forward to backward operators.
#include <algorithm>
#include <map>
#include <tuple>

#include "viewer_export/out/chrome_events.hpp"

namespace ringside::viewer_export::chrome {

using model::Index;

namespace {

struct Forward {
    std::uint32_t thread;
    std::int64_t sequence;
    std::int64_t begin_ns;
    Index lane;
    Index range;
    auto key() const { return std::tuple(thread, sequence, begin_ns); }
};

bool is_forward(const model::Range& range) {
    return range.is_operator && range.argument >= 0 &&
           range.detail == static_cast<std::uint8_t>(schema::TorchScope::kFunction);
}

bool is_backward(const model::Range& range) {
    return range.is_operator && range.argument >= 0 && range.forward_thread != 0 &&
           range.detail == static_cast<std::uint8_t>(schema::TorchScope::kBackward);
}

/// Forward operators by (thread, sequence, begin), of the processes that have backward ones.
std::map<Index, std::vector<Forward>> forwards_of(const model::Job& job) {
    std::map<Index, std::vector<Forward>> forwards;
    for (const model::Lane& lane : job.lanes) {
        if (std::any_of(lane.ranges.begin(), lane.ranges.end(), is_backward))
            forwards[lane.process];
    }
    for (Index i = 0; i < job.lanes.size(); ++i) {
        const auto process = forwards.find(job.lanes[i].process);
        if (process == forwards.end()) continue;
        const auto& ranges = job.lanes[i].ranges;
        for (Index k = 0; k < ranges.size(); ++k) {
            if (!is_forward(ranges[k])) continue;
            process->second.push_back(
                {ranges[k].thread, ranges[k].argument, ranges[k].begin_ns, i, k});
        }
    }
    for (auto& [process, list] : forwards) {
        std::sort(list.begin(), list.end(), [](const Forward& left, const Forward& right) {
            return left.key() < right.key();
        });
    }
    return forwards;
}

/// @return the latest forward operator of the thread and sequence that `range` names and that began before it; null: none
const Forward* forward_of(const std::vector<Forward>& forwards, const model::Range& range) {
    const std::tuple key(range.forward_thread, range.argument, range.begin_ns);
    const auto after =
        std::partition_point(forwards.begin(), forwards.end(),
                             [&](const Forward& forward) { return forward.key() < key; });
    if (after == forwards.begin()) return nullptr;
    const Forward& found = *(after - 1);
    return found.thread == range.forward_thread && found.sequence == range.argument ? &found
                                                                                    : nullptr;
}

}  // namespace

/// About as many as there will be: most are a range each, a joined call is six, a backward operator has an arrow.
std::uint64_t EventWriter::expected_elements() const {
    std::uint64_t count =
        job_.ranges() + job_.asyncs.size() + job_.values.size() + 3 * job_.halves.size();
    for (const model::Lane& lane : job_.lanes) {
        count += 2 * static_cast<std::uint64_t>(
                         std::count_if(lane.ranges.begin(), lane.ranges.end(), is_backward));
    }
    return count;
}

void EventWriter::iterations() {
    std::map<std::pair<Index, Index>, std::vector<const model::Value*>>
        boundaries;  // (process, name)
    for (const model::Value& value : job_.values) {
        if (value.kind != schema::RecordKind::kIteration) continue;
        boundaries[{job_.lanes[value.lane].process, value.name}].push_back(&value);
    }
    // Readers count steps by the name ProfilerStep#N, so only one kind of boundary a process may bear it: that of the iterations which were
    // asked for, else the most frequent.
    std::map<Index, std::pair<std::size_t, Index>> chosen;
    for (const auto& [key, list] : boundaries) {
        auto& best = chosen[key.first];
        const auto& asked = job_.processes[key.first].iterations;
        const bool sought = asked && asked->name == job_.names[key.second];
        const std::size_t rank = sought ? job_.values.size() + 1 : list.size();
        if (rank > best.first) best = {rank, key.second};
    }
    for (auto& [key, list] : boundaries) {
        if (list.size() < 2) continue;
        std::stable_sort(list.begin(), list.end(),
                         [](const auto* a, const auto* b) { return a->ns < b->ns; });
        const bool steps = chosen[key.first].second == key.second;
        const std::string& name = job_.names[key.second];
        const std::uint32_t track =
            tracks_.add_row(key.first, steps ? "iterations" : "iterations of " + name);
        for (std::size_t i = 0; i + 1 < list.size(); ++i) {
            // The n-th boundary ends step n - 1, counted from 0 as torch does: between it and the next lies step n.
            std::string head = "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"";
            append_json_escaped(steps ? "ProfilerStep" : name, head);
            head += "#" + std::to_string(list[i]->value) + "\"";
            slice_head(head, track, list[i]->ns, list[i + 1]->ns);
            json_.text(",\"args\":{\"Boundary\":");
            json_.quoted(name);
            json_.text("}}");
            ++counts_.iterations;
        }
    }
}

void EventWriter::forward_flows() {
    const std::map<Index, std::vector<Forward>> forwards = forwards_of(job_);
    if (forwards.empty()) return;
    for (Index i = 0; i < job_.lanes.size(); ++i) {
        const auto process = forwards.find(job_.lanes[i].process);
        if (process == forwards.end()) continue;
        const auto& ranges = job_.lanes[i].ranges;
        for (Index k = 0; k < ranges.size(); ++k) {
            if (!is_backward(ranges[k])) continue;
            const Forward* forward = forward_of(process->second, ranges[k]);
            if (forward == nullptr) continue;
            // Both at their begins, as Kineto has it: Perfetto binds an arrow to the slice that began last.
            const std::uint64_t id = next_flow_++;
            flow('s', "fwdbwd", id, tracks_.range_track(forward->lane, forward->range),
                 forward->begin_ns);
            flow('f', "fwdbwd", id, tracks_.range_track(i, k), ranges[k].begin_ns);
            ++counts_.fwdbwd;
        }
    }
}

}  // namespace ringside::viewer_export::chrome
