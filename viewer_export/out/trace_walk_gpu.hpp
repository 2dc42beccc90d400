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
void Walk<Writer>::call(Index index) {
    const model::GpuCall& call = job_.gpu_calls[index];
    count_element();
    writer_.slice(call.api == schema::GpuApi::kDriver ? Category::kDriver : Category::kRuntime,
                  call.name, plan_.tracks.call_track(index), call.begin_ns,
                  std::max(call.begin_ns, call.end_ns));
    with_external_id(call, [&](std::uint64_t id) { writer_.arg("External id", id); });
    writer_.arg("cbid", std::uint64_t{call.callback});
    writer_.arg("correlation", std::uint64_t{call.correlation});
    if (call.result != 0) writer_.arg("Result", std::uint64_t{call.result});
    writer_.record(call.lane, call.position);
    if (call.request != model::kNone) request(call.request);
    for (const Index launched : plan_.arrows.work_of(index)) writer_.flow(Arrows::launch(launched));
    writer_.end();
    ++counts_.gpu_calls;
}

template <class Writer>
const std::string& Walk<Writer>::kernel_name(const model::GpuWork& work) {
    std::string& name = kernel_names_[work.name];
    if (name.empty()) name = work_name(job_, work);
    return name;
}

template <class Writer>
const model::GpuDevice* Walk<Writer>::device_of(const model::GpuWork& work) {
    const auto [at, added] = devices_.try_emplace({work.process, work.device}, nullptr);
    if (!added) return at->second;
    for (const model::GpuDevice& device : job_.gpu_devices) {
        if (device.process == work.process && device.device == work.device) at->second = &device;
    }
    return at->second;
}

template <class Writer>
void Walk<Writer>::work(Index index) {
    const model::GpuWork& work = job_.gpu_work[index];
    const bool kernel = work.kind == schema::RecordKind::kGpuKernel;
    count_element();
    writer_.slice(
        category_of(work), std::string_view(kernel ? kernel_name(work) : work_name(job_, work)),
        plan_.tracks.work_track(index), work.begin_ns, std::max(work.begin_ns, work.end_ns));
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
    if (work.on_device() && work.call != model::kNone) writer_.flow(Arrows::launch(index));
    writer_.end();
    ++counts_.gpu_work;
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
        writer_.arg("memory bandwidth (GB/s)", ns > 0 ? static_cast<double>(work.bytes) / ns : 0.0);
    }
    if (work.kind == RecordKind::kGpuSync) {
        writer_.arg("cuda_sync_kind", std::string_view(work_name(job_, work)));
        if (work.value != 0) writer_.arg("wait_on_cuda_event_id", std::uint64_t{work.value});
    }
    if (work.kind == RecordKind::kGpuEvent) writer_.arg("event_id", std::uint64_t{work.value});
}

template <class Writer>
void Walk<Writer>::kernel_args(const model::GpuWork& work) {
    writer_.arg("registers per thread", std::uint64_t{work.registers});
    writer_.arg("shared memory",
                std::uint64_t{work.static_shared_bytes} + work.dynamic_shared_bytes);
    if (const model::GpuDevice* device = device_of(work)) {
        const Shape shape = shape_of(work, *device);
        writer_.arg("blocks per SM", shape.blocks_per_processor);
        writer_.arg("warps per SM", shape.warps_per_processor);
        writer_.list("grid", work.grid);
        writer_.list("block", work.block);
        writer_.arg("est. achieved occupancy %", std::uint64_t{shape.occupancy_percent});
    } else {
        writer_.list("grid", work.grid);
        writer_.list("block", work.block);
    }
}

}  // namespace ringside::viewer_export::trace
