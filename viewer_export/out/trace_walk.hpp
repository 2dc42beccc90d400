// The walk over a job that makes a time line: what is an event, where it lies, what it is called, what is said of it. A format is a Writer, a
// parameter instead of an interface, for its calls are some ten an event:
//
//   group, row                        numbers and names of processes, devices and rows
//   begin_row, end_row                around the slices of a row that nest and come in the order of time, several rows at once; others come in any order
//   slice, instant  ... args ...  end a slice, or an instant; between them record, arg, list, verbatim, shared, flow
//   counter                           a point in any order; begin_counter, point, end_counter: those of one counter in the order of time
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "viewer_export/model/call_times.hpp"
#include "viewer_export/out/gpu_shape.hpp"
#include "viewer_export/out/trace_counters.hpp"
#include "viewer_export/out/trace_items.hpp"
#include "viewer_export/out/trace_plan.hpp"

namespace ringside::viewer_export::trace {

/// Whole numbers are told as such, as readers of JSON take them.
template <class Writer, std::size_t N>
void real(Writer& writer, const char (&key)[N], double value) {
    constexpr double kMost = 1e15;
    if (value >= 0 && value < kMost && value == std::floor(value)) {
        writer.arg(key, static_cast<std::uint64_t>(value));
    } else {
        writer.arg(key, value);
    }
}

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

    void lane(const Rows& rows);
    void mixed(Index process, Items& items, std::vector<Nesting>& nestings);
    void range(Index lane, Index index, std::uint32_t track, bool launches);
    void asyncs();
    void halves();
    void values();
    void instant(const model::Value& value);
    void counter(const model::Value& value);
    void steps();
    void counters();

    // trace_walk_gpu.hpp
    void call(Index index, std::uint32_t track);
    void work(Index index, std::uint32_t track);
    void projection(Index index, std::uint32_t track);
    void step_span(const Item& item, std::uint32_t track);
    void kernel_args(const model::GpuWork& work);
    void place_args(const model::GpuWork& work);
    void wait_args(const model::GpuWork& work);
    const model::GpuDevice* device_of(const model::GpuWork& work);
    template <class To>
    void with_external_id(const model::GpuCall& call, To&& to);

    // What events say. trace_walk_args.hpp
    void attributes(Index attributes, std::uint64_t argument);
    void payload(schema::PayloadType type, std::uint64_t argument);
    void request(Index request);
    void collective(Index arrival);
    void ended(model::End end, Index process);
    void shapes(Index shapes);
    void half_args(const model::Half& half, const model::Call& call);
    void call_times(const model::Call& call);

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
};

template <class Writer>
TraceCounts Walk<Writer>::write() {
    for (std::uint32_t i = 0; i < plan_.tracks.groups().size(); ++i)
        writer_.group(plan_.tracks.groups()[i], i);
    for (std::uint32_t i = 0; i < plan_.tracks.all().size(); ++i)
        writer_.row(plan_.tracks.all()[i], i);
    std::vector<Nesting> nestings(plan_.tracks.rows().size());
    Items items(job_, plan_.tracks);
    for (const Rows& rows : plan_.tracks.rows()) {
        if (!rows.mixed) lane(rows);
    }
    for (Index i = 0; i < job_.processes.size(); ++i) {
        if (plan_.drawn[i]) mixed(i, items, nestings);
    }
    asyncs();
    halves();
    values();
    steps();
    counters();
    counts_.fwdbwd = plan_.arrows.backwards();
    if (!plan_.cuda_sync) {
        counts_.left_out = static_cast<std::uint64_t>(std::count_if(
            job_.gpu_work.begin(), job_.gpu_work.end(), [&](const model::GpuWork& work) {
                return plan_.drawn[work.process] && model::is_wait(work);
            }));
    }
    counts_.slices = counts_.ranges + counts_.asyncs + counts_.rpc_halves + counts_.iterations +
                     counts_.gpu_calls + counts_.gpu_work + counts_.gpu_annotations;
    counts_.lost = job_.totals.lost;
    return counts_;
}

/// A thread on which there is nothing but its lane's ranges.
template <class Writer>
void Walk<Writer>::lane(const Rows& rows) {
    const auto& ranges = job_.lanes[rows.lane].ranges;
    for (std::uint32_t row = 0; row <= rows.more; ++row) {
        Nesting nesting;
        writer_.begin_row(rows.track + row);
        for (Index i = 0; i < ranges.size(); ++i) {
            if (rows.more == 0 || nesting.place(ranges[i].begin_ns, ranges[i].end_ns) == row)
                range(rows.lane, i, rows.track + row, false);
        }
        writer_.end_row(rows.track + row);
    }
}

/// A process's other threads and its streams, all at once.
template <class Writer>
void Walk<Writer>::mixed(Index process, Items& items, std::vector<Nesting>& nestings) {
    const auto each_track = [&](auto&& to) {
        for (const Rows& rows : plan_.tracks.rows()) {
            if (!rows.mixed || rows.process != process) continue;
            for (std::uint32_t row = 0; row <= rows.more; ++row) to(rows.track + row);
        }
    };
    std::unordered_map<Index, std::vector<bool>> launches;  // by lane: of its ranges
    const auto [first, last] = of_process(job_.gpu_calls, process);
    for (Index i = first; i < last; ++i) {
        const model::GpuCall& call = job_.gpu_calls[i];
        if (call.range == model::kNone) continue;
        std::vector<bool>& of_lane = launches[call.thread_lane];
        if (of_lane.empty()) of_lane.resize(job_.lanes[call.thread_lane].ranges.size());
        of_lane[call.range] = true;
    }
    each_track([&](std::uint32_t track) { writer_.begin_row(track); });
    items.walk(process, [&](Index index, const Item& item) {
        const Rows& rows = plan_.tracks.rows()[index];
        const std::uint32_t row =
            rows.more == 0 ? 0 : nestings[index].place(item.begin_ns, item.end_ns);
        const std::uint32_t track = rows.track + row;
        if (item.kind == ItemKind::kRange) {
            const auto of_lane = launches.find(rows.lane);
            range(rows.lane, item.index, track,
                  of_lane != launches.end() && of_lane->second[item.index]);
        } else if (item.kind == ItemKind::kCall) {
            call(item.index, track);
        } else if (item.kind == ItemKind::kWork) {
            work(item.index, track);
        } else if (item.kind == ItemKind::kStep) {
            step_span(item, track);
        } else {
            projection(item.index, track);
        }
    });
    each_track([&](std::uint32_t track) { writer_.end_row(track); });
}

template <class Writer>
void Walk<Writer>::range(Index lane_index, Index index, std::uint32_t track, bool launches) {
    const model::Lane& lane = job_.lanes[lane_index];
    const model::Range& range = lane.ranges[index];
    count_element();
    writer_.slice(category_of(range), range.name, track, range.begin_ns, range.end_ns);
    writer_.record(lane_index, range.position);
    if (range.is_operator) {
        writer_.arg("External id", plan_.external_id(lane_index, index));
        if (range.argument >= 0) {
            writer_.arg("Sequence number", range.argument);
            writer_.arg("Fwd thread id", std::uint64_t{range.forward_thread});
            if (const auto flow = plan_.arrows.of_operator({lane_index, index}))
                writer_.flow(*flow);
        }
        if (range.shapes != model::kNone) shapes(range.shapes);
    } else {
        if (launches) writer_.arg("External id", plan_.external_id(lane_index, index));
        attributes(range.attributes, static_cast<std::uint64_t>(range.argument));
        collective(plan_.collectives.of_range(lane_index, index));
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
        collective(plan_.collectives.of_async(i));
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
        const bool client = i == job_.calls[half.call].client;
        if (const auto flow = plan_.arrows.request_of(i)) {
            writer_.flow(*flow);
            counts_.rpc_requests += client;
        }
        if (const auto flow = plan_.arrows.reply_of(i)) {
            writer_.flow(*flow);
            counts_.rpc_replies += client;
        }
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
        writer_.arg("Device Type", std::uint64_t{value.detail});
        // Which of the GPUs is in no record.
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
        for (Index i = 0; i < steps.count; ++i) {
            const Step step = steps.at(job_, i);
            const std::string name = steps.chosen ? profiler_step(step.number)
                                                  : boundary + "#" + std::to_string(step.number);
            writer_.slice(Category::kUserAnnotation, std::string_view(name), steps.track,
                          step.begin_ns, step.end_ns);
            if (steps.chosen) writer_.arg("External id", plan_.external_id(step.boundary));
            writer_.arg("Boundary", std::string_view(boundary));
            writer_.end();
            ++counts_.iterations;
        }
        writer_.end_row(steps.track);
    }
}

template <class Writer>
void Walk<Writer>::counters() {
    const auto points = [&](std::uint32_t group, const char* name, auto&& tell) {
        writer_.begin_counter(group, name);
        tell([&](const Point& point) {
            writer_.point(point.ns, point.value);
            ++counts_.derived;
        });
        writer_.end_counter();
    };
    for (const Steps& steps : plan_.steps) {
        if (!steps.chosen) continue;
        points(plan_.tracks.group(steps.process), kIterationTime,
               [&](const auto& to) { iteration_times(job_, steps, to); });
    }
    for (Index i = 0; i < job_.processes.size(); ++i) {
        if (!plan_.drawn[i]) continue;
        points(plan_.tracks.group(i), kLost,
               [&](const auto& to) { losses(job_, i, plan_.base_ns, to); });
    }
    for (const Tracks::Device& device : plan_.tracks.devices()) {
        if (device.device >= model::kMostDevices) continue;
        points(device.group, kGpuBusy,
               [&](const auto& to) { busy(job_, plan_.tracks, device, to); });
    }
}

}  // namespace ringside::viewer_export::trace

#include "viewer_export/out/trace_walk_args.hpp"
#include "viewer_export/out/trace_walk_gpu.hpp"
