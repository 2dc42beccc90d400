// Part of trace_walk.hpp: calls of CUDA, and what the GPU did, with Kineto's names for what is said of them.
#pragma once

#include "viewer_export/out/trace_walk.hpp"

namespace ringside::viewer_export::trace {

/// The number of the range that made a call, where it is known: what ran for an operator is found by it.
template <class Writer>
template <class To>
void Walk<Writer>::with_external_id(const model::GpuCall& call, To&& to) {
    if (call.range != model::kNone) to(plan_.external_id(call.thread_lane, call.range));
}

template <class Writer>
void Walk<Writer>::call(Index index, std::uint32_t track) {
    const model::GpuCall& call = job_.gpu_calls[index];
    count_element();
    writer_.slice(call.api == schema::GpuApi::kDriver ? Category::kDriver : Category::kRuntime,
                  call.name, track, call.begin_ns, std::max(call.begin_ns, call.end_ns));
    with_external_id(call, [&](std::uint64_t id) { writer_.arg("External id", id); });
    writer_.arg("cbid", std::uint64_t{call.callback});
    writer_.arg("correlation", std::uint64_t{call.correlation});
    if (call.result != 0) writer_.arg("Result", std::uint64_t{call.result});
    writer_.record(call.lane, call.position);
    if (call.request != model::kNone) request(call.request);
    for (Index work = call.first_work; work != model::kNone; work = job_.gpu_work[work].next_work)
        writer_.flow(plan_.arrows.leaving(call, work));
    writer_.end();
    ++counts_.gpu_calls;
}

template <class Writer>
const model::GpuDevice* Walk<Writer>::device_of(const model::GpuWork& work) {
    const auto at = std::partition_point(
        job_.gpu_devices.begin(), job_.gpu_devices.end(), [&](const model::GpuDevice& each) {
            return std::pair(each.process, each.device) < std::pair(work.process, work.device);
        });
    return at != job_.gpu_devices.end() && at->process == work.process && at->device == work.device
               ? &*at
               : nullptr;
}

template <class Writer>
void Walk<Writer>::work(Index index, std::uint32_t track) {
    const model::GpuWork& work = job_.gpu_work[index];
    const bool kernel = work.kind == schema::RecordKind::kGpuKernel;
    count_element();
    writer_.slice(category_of(work), plan_.work_names.of(work), track, work.begin_ns,
                  std::max(work.begin_ns, work.end_ns));
    if (work.call != model::kNone) {
        with_external_id(job_.gpu_calls[work.call],
                         [&](std::uint64_t id) { writer_.arg("External id", id); });
    }
    if (kernel) {
        // Kineto's own: 0 where nobody asked for it.
        writer_.arg("queued",
                    work.queued_ns == 0 ? std::int64_t{0} : work.queued_ns - plan_.base_ns);
    }
    place_args(work);
    if (kernel) kernel_args(work);
    if (work.graph != 0) {
        writer_.arg("graph id", std::uint64_t{work.graph});
        writer_.arg("graph node id", work.graph_node);
    }
    writer_.record(work.lane, work.position);
    if (work.call != model::kNone && job_.gpu_calls[work.call].request != model::kNone)
        request(job_.gpu_calls[work.call].request);
    if (work.on_device() && work.call != model::kNone) {
        writer_.flow(plan_.arrows.arriving(job_.gpu_calls[work.call], index));
        ++counts_.launches;
    }
    writer_.end();
    ++counts_.gpu_work;
}

/// A user's range as a stream ran it, beside its External id as bare as Kineto's.
template <class Writer>
void Walk<Writer>::projection(Index index, std::uint32_t track) {
    const model::Projection& each = plan_.tracks.projections()[index];
    count_element();
    writer_.slice(Category::kGpuAnnotation, job_.lanes[each.lane].ranges[each.range].name, track,
                  each.begin_ns, each.end_ns);
    writer_.arg("External id", plan_.external_id(each.lane, each.range));
    writer_.end();
    ++counts_.gpu_annotations;
}

/// Its iteration, likewise.
template <class Writer>
void Walk<Writer>::step_span(const Item& item, std::uint32_t track) {
    count_element();
    const std::string name = profiler_step(job_.values[item.index].value);
    writer_.slice(Category::kGpuAnnotation, std::string_view(name), track, item.begin_ns,
                  item.end_ns);
    writer_.arg("External id", plan_.external_id(item.index));
    writer_.end();
    ++counts_.gpu_annotations;
}

template <class Writer>
void Walk<Writer>::place_args(const model::GpuWork& work) {
    using schema::RecordKind;
    if (work.kind == RecordKind::kGpuOverhead) return;
    const bool whole_context = work.stream == ~std::uint32_t{0};
    writer_.arg("device", std::uint64_t{plan_.tracks.device_of(work)});
    writer_.arg("context", std::uint64_t{work.context});
    writer_.arg("stream", whole_context ? std::int64_t{-1} : std::int64_t{work.stream});
    writer_.arg("correlation", std::uint64_t{work.correlation});
    if (work.kind == RecordKind::kGpuCopy || work.kind == RecordKind::kGpuMemset) {
        writer_.arg("bytes", work.bytes);
        const auto ns = static_cast<double>(work.duration_ns());
        real(writer_, "memory bandwidth (GB/s)",
             ns > 0 ? static_cast<double>(work.bytes) / ns : 0.0);
    }
    if (work.kind == RecordKind::kGpuSync) {
        writer_.arg("cuda_sync_kind", plan_.work_names.of(work));
        wait_args(work);
    }
    if (work.kind == RecordKind::kGpuEvent) writer_.arg("event_id", std::uint64_t{work.value});
}

/// Kineto's -1: nobody knows.
template <class Writer>
void Walk<Writer>::wait_args(const model::GpuWork& work) {
    if (!model::waits_for_event(work)) return;
    const model::GpuWork* event =
        work.waited_for == model::kNone ? nullptr : &job_.gpu_work[work.waited_for];
    writer_.arg("wait_on_stream",
                event == nullptr ? std::int64_t{-1} : std::int64_t{event->stream});
    writer_.arg("wait_on_cuda_event_record_corr_id",
                event == nullptr ? std::int64_t{-1} : std::int64_t{event->correlation});
    writer_.arg("wait_on_cuda_event_id", std::uint64_t{work.value});
}

template <class Writer>
void Walk<Writer>::kernel_args(const model::GpuWork& work) {
    writer_.arg("registers per thread", std::uint64_t{work.registers});
    writer_.arg("shared memory",
                std::uint64_t{work.static_shared_bytes} + work.dynamic_shared_bytes);
    if (const model::GpuDevice* device = device_of(work)) {
        const Shape shape = shape_of(work, *device);
        real(writer_, "blocks per SM", shape.blocks_per_processor);
        real(writer_, "warps per SM", shape.warps_per_processor);
        writer_.list("grid", work.grid);
        writer_.list("block", work.block);
        writer_.arg("est. achieved occupancy %", std::uint64_t{shape.occupancy_percent});
    } else {
        writer_.list("grid", work.grid);
        writer_.list("block", work.block);
    }
}

}  // namespace ringside::viewer_export::trace
