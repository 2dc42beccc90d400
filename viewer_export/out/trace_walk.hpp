// The walk over a job that makes a time line: what is an event, where it lies, what it is called, what is said of it. A format is a Writer, a
// parameter instead of an interface, for its calls are some ten an event:
//
//   group, row                        numbers and names of processes, devices and rows
//   begin_row, end_row                around the slices of one row that nest; others come in any order
//   slice, instant  ... args ...  end a slice, or an instant; between them record, arg, list, verbatim, shared, flow, end_flow
//   counter, arrow                    an arrow for formats that draw it from instant to instant; kFlowsInSlices: flow and end_flow do it
#pragma once

#include <array>
#include <bit>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "viewer_export/out/gpu_shape.hpp"
#include "viewer_export/out/trace_counters.hpp"
#include "viewer_export/out/trace_plan.hpp"

namespace ringside::viewer_export::trace {

/// What several events say alike; a Writer may keep how it is written.
enum class Shared : std::uint8_t { kAttributes, kRequest };
inline constexpr std::size_t kShared = 2;

template <class Writer>
class Walk {
public:
    Walk(const Plan& plan, Writer& writer, const model::Tell& tell)
        : plan_(plan),
          job_(plan.job),
          writer_(writer),
          tell_(tell),
          memory_name_(job_.names.find(schema::kMemoryName)) {}

    TraceCounts write();

private:
    using Index = model::Index;

    void lanes_and_streams();
    void items(const Rows& rows);
    void range(Index lane, Index index, bool launches);
    void asyncs();
    void halves();
    void values();
    void instant(const model::Value& value);
    void counter(const model::Value& value);
    void steps();
    void counters();
    void points(std::uint32_t group, const char* name, const std::vector<Point>& points);
    void arrows();

    // trace_walk_gpu.hpp
    void call(Index index);
    void work(Index index);
    void kernel_args(const model::GpuWork& work);
    void place_args(const model::GpuWork& work);
    const std::string& kernel_name(const model::GpuWork& work);
    const model::GpuDevice* device_of(const model::GpuWork& work);
    template <class To>
    void with_external_id(const model::GpuCall& call, To&& to);

    // What events say. trace_walk_args.hpp
    void attributes(Index attributes, std::uint64_t argument);
    void payload(schema::PayloadType type, std::uint64_t argument);
    void request(Index request);
    void ended(model::End end, Index process);
    void shapes(Index shapes);
    void half_args(const model::Half& half, const model::Call& call);

    void count_element() {
        constexpr std::uint64_t kBetween = 1 << 14;
        if (elements_++ % kBetween == 0 && tell_)
            tell_("writing events", std::min(elements_ - 1, plan_.elements), plan_.elements);
    }

    const Plan& plan_;
    const model::Job& job_;
    Writer& writer_;
    const model::Tell& tell_;
    Index memory_name_;  ///< of Job::names; kNone: no memory was recorded
    TraceCounts counts_;
    std::uint64_t elements_ = 0;
    std::unordered_map<Index, std::string> kernel_names_;
    std::map<std::pair<Index, std::uint32_t>, const model::GpuDevice*> devices_;
};

template <class Writer>
TraceCounts Walk<Writer>::write() {
    for (std::uint32_t i = 0; i < plan_.tracks.groups().size(); ++i)
        writer_.group(plan_.tracks.groups()[i], i);
    for (std::uint32_t i = 0; i < plan_.tracks.all().size(); ++i)
        writer_.row(plan_.tracks.all()[i], i);
    lanes_and_streams();
    asyncs();
    halves();
    values();
    steps();
    counters();
    arrows();
    counts_.slices = counts_.ranges + counts_.asyncs + counts_.rpc_halves + counts_.iterations +
                     counts_.gpu_calls + counts_.gpu_work;
    counts_.lost = job_.totals.lost;
    return counts_;
}

template <class Writer>
void Walk<Writer>::lanes_and_streams() {
    for (const Rows& rows : plan_.tracks.rows()) {
        if (rows.items.empty()) {
            const auto& ranges = job_.lanes[rows.lane].ranges;
            for (std::uint32_t row = rows.track; row <= rows.track + rows.more; ++row) {
                writer_.begin_row(row);
                for (Index i = 0; i < ranges.size(); ++i) {
                    if (rows.more == 0 || plan_.tracks.range_track(rows.lane, i) == row)
                        range(rows.lane, i, false);
                }
                writer_.end_row();
            }
        } else {
            items(rows);
        }
    }
}

/// A thread with calls of CUDA between its ranges, or a stream.
template <class Writer>
void Walk<Writer>::items(const Rows& rows) {
    std::vector<bool> launches(rows.lane == model::kNone ? 0 : job_.lanes[rows.lane].ranges.size());
    for (const Item& item : rows.items) {
        if (item.kind != ItemKind::kCall) continue;
        const Index around = job_.gpu_calls[item.index].range;
        if (around != model::kNone) launches[around] = true;
    }
    const Tracks& tracks = plan_.tracks;
    for (std::uint32_t row = rows.track; row <= rows.track + rows.more; ++row) {
        writer_.begin_row(row);
        for (const Item& item : rows.items) {
            if (item.kind == ItemKind::kRange) {
                if (tracks.range_track(rows.lane, item.index) == row)
                    range(rows.lane, item.index, launches[item.index]);
            } else if (item.kind == ItemKind::kCall) {
                if (tracks.call_track(item.index) == row) call(item.index);
            } else if (tracks.work_track(item.index) == row) {
                work(item.index);
            }
        }
        writer_.end_row();
    }
}

template <class Writer>
void Walk<Writer>::range(Index lane_index, Index index, bool launches) {
    const model::Lane& lane = job_.lanes[lane_index];
    const model::Range& range = lane.ranges[index];
    count_element();
    writer_.slice(category_of(range), range.name, plan_.tracks.range_track(lane_index, index),
                  range.begin_ns, range.end_ns);
    writer_.record(lane_index, range.position);
    if (range.is_operator) {
        writer_.arg("External id", plan_.external_id(lane_index, index));
        if (range.argument >= 0) {
            writer_.arg("Sequence number", range.argument);
            writer_.arg("Fwd thread id", std::uint64_t{range.forward_thread});
            if constexpr (Writer::kFlowsInSlices) {
                for (const Tied& tied : plan_.arrows.of_range(lane_index, index))
                    writer_.flow(tied.arrow);
            }
        }
        if (range.shapes != model::kNone) shapes(range.shapes);
    } else {
        if (launches) writer_.arg("External id", plan_.external_id(lane_index, index));
        attributes(range.attributes, static_cast<std::uint64_t>(range.argument));
    }
    if (range.request != model::kNone) request(range.request);
    ended(range.end, lane.process);
    writer_.end();
    ++counts_.ranges;
}

template <class Writer>
void Walk<Writer>::asyncs() {
    for (Index i = 0; i < job_.asyncs.size(); ++i) {
        const model::AsyncRange& range = job_.asyncs[i];
        if (!plan_.draws_lane(range.lane)) continue;
        count_element();
        writer_.slice(Category::kUserAnnotation, range.name, plan_.tracks.async_track(i),
                      range.begin_ns, range.end_ns);
        writer_.hex("Key", range.key);
        attributes(range.attributes, range.argument);
        if (range.request != model::kNone) request(range.request);
        ended(range.end, job_.lanes[range.lane].process);
        writer_.end();
        ++counts_.asyncs;
    }
}

template <class Writer>
void Walk<Writer>::halves() {
    for (Index i = 0; i < job_.halves.size(); ++i) {
        const model::Half& half = job_.halves[i];
        if (!half.shown() || !plan_.drawn[half.process]) continue;
        count_element();
        writer_.slice(Category::kRpc, std::string_view(plan_.names.own(half.call)),
                      plan_.tracks.half_track(i), half.begin_ns, half.end_ns);
        half_args(half, job_.calls[half.call]);
        if (const std::uint64_t arrow = plan_.arrows.request_of(i)) writer_.flow(arrow);
        if (const std::uint64_t arrow = plan_.arrows.reply_of(i)) writer_.end_flow(arrow);
        writer_.end();
        ++counts_.rpc_halves;
    }
}

template <class Writer>
void Walk<Writer>::instant(const model::Value& value) {
    writer_.instant(
        value.kind == schema::RecordKind::kIteration ? Category::kIteration : Category::kInstant,
        value.name, plan_.tracks.lane_track(value.lane), value.ns);
    if (value.name == memory_name_ && value.source == schema::SourceId::kTorch) {
        // As Kineto's `[memory]` instants.
        writer_.arg("Bytes", static_cast<std::int64_t>(value.argument));
        writer_.arg("Addr", value.value);
        writer_.arg("Device Type", std::uint64_t{0});
        writer_.arg("Device Id", std::int64_t{-1});
    } else {
        writer_.arg("Value", value.value);
        attributes(value.attributes, value.argument);
    }
    if (value.request != model::kNone) request(value.request);
    writer_.end();
    ++counts_.instants;
}

template <class Writer>
void Walk<Writer>::counter(const model::Value& value) {
    const std::uint32_t group = plan_.tracks.group(job_.lanes[value.lane].process);
    const std::string& name = job_.names[value.name];
    const auto type = value.attributes < job_.attributes.size()
                          ? job_.attributes[value.attributes].payload
                          : schema::PayloadType::kNone;
    if (type == schema::PayloadType::kDouble) {
        writer_.counter(group, name, value.ns, std::bit_cast<double>(value.argument));
    } else if (type == schema::PayloadType::kSigned) {
        writer_.counter(group, name, value.ns, static_cast<std::int64_t>(value.argument));
    } else {
        writer_.counter(group, name, value.ns,
                        type == schema::PayloadType::kUnsigned ? value.argument : value.value);
    }
    ++counts_.counters;
}

template <class Writer>
void Walk<Writer>::values() {
    for (const model::Value& value : job_.values) {
        if (!plan_.draws_lane(value.lane)) continue;
        count_element();
        if (value.kind == schema::RecordKind::kCounter) {
            counter(value);
        } else {
            instant(value);
        }
    }
}

template <class Writer>
void Walk<Writer>::steps() {
    for (const Steps& steps : plan_.steps) {
        const std::string& boundary = job_.names[steps.boundary];
        writer_.begin_row(steps.track);
        for (const Step& step : steps.list) {
            writer_.slice(Category::kUserAnnotation,
                          (steps.profiler ? std::string("ProfilerStep") : boundary) + "#" +
                              std::to_string(step.number),
                          steps.track, step.begin_ns, step.end_ns);
            writer_.arg("Boundary", std::string_view(boundary));
            writer_.end();
            ++counts_.iterations;
        }
        writer_.end_row();
    }
}

template <class Writer>
void Walk<Writer>::points(std::uint32_t group, const char* name, const std::vector<Point>& points) {
    for (const Point& point : points) writer_.counter(group, name, point.ns, point.value);
    counts_.derived += points.size();
}

template <class Writer>
void Walk<Writer>::counters() {
    for (const Steps& steps : plan_.steps) {
        if (steps.profiler)
            points(plan_.tracks.group(steps.process), kIterationTime, iteration_times(steps));
    }
    for (Index i = 0; i < job_.processes.size(); ++i) {
        if (plan_.drawn[i]) points(plan_.tracks.group(i), kLost, losses(job_, i, plan_.base_ns));
    }
    for (const Tracks::Device& device : plan_.tracks.devices())
        points(device.group, kGpuBusy, busy(job_, plan_.tracks, device));
}

template <class Writer>
void Walk<Writer>::arrows() {
    for (const Arrow& arrow : plan_.arrows.all()) {
        count_element();
        writer_.arrow(arrow);
    }
    const Tracks& tracks = plan_.tracks;
    for (Index i = 0; i < job_.gpu_work.size(); ++i) {
        const model::GpuWork& work = job_.gpu_work[i];
        if (!plan_.drawn[work.process] || !work.on_device() || work.call == model::kNone) continue;
        const model::GpuCall& call = job_.gpu_calls[work.call];
        writer_.arrow(drawn_forward(
            {"ac2g",
             Arrows::launch(i),
             {tracks.call_track(work.call), call.begin_ns, call.begin_ns, call.end_ns},
             {tracks.work_track(i), work.begin_ns, work.begin_ns, work.end_ns}}));
        ++counts_.launches;
    }
    counts_.rpc_requests = plan_.arrows.requests();
    counts_.rpc_replies = plan_.arrows.replies();
    counts_.fwdbwd = plan_.arrows.backwards();
}

}  // namespace ringside::viewer_export::trace

#include "viewer_export/out/trace_walk_args.hpp"
#include "viewer_export/out/trace_walk_gpu.hpp"
