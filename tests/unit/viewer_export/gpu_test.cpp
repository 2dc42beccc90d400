// The GPU's records to a model: fields, the call, range and request that work belongs to, trimming.
#include <doctest/doctest.h>

#include "gpu_dump.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export;
using namespace ringside::viewer_export::model;
namespace fbs = ringside::fbs;
using ringside::schema::GpuMemory;
using ringside::schema::RecordKind;

namespace {

/// Cut to 1000 ticks, and to the iterations that were asked for.
struct CutDump : GpuDump {
    void kernel(std::uint64_t begin, std::uint64_t end, std::uint32_t number) const {
        GpuDump::kernel("kernel", begin, end, number);
    }
    Job load(const fbs::IterationsT* iterations = nullptr) {
        if (iterations != nullptr) {
            dump.end(0, 1000, *iterations);
        } else {
            dump.end(0, fbs::Fate::Running, 1000);
        }
        return GpuDump::load(1000);
    }
    std::string range_of(const Job& job, const GpuCall& call) const {
        if (call.range == kNone) return "none";
        return job.names[job.lanes[call.thread_lane].ranges[call.range].name];
    }
};

}  // namespace

TEST_CASE("gpu: a kernel has its place, its shape and its times in nanoseconds of the node") {
    CutDump gpu;
    gpu.told->gpu(RecordKind::kGpuKernel, "_Z3addPf",
                  {500, 600, pair(9, 1), pair(2, 7), pair(128, 3), pair(1, 256), pair(2, 4),
                   pair(64, 96), pair(40, 5), 77, 490});
    const Job job = gpu.load();
    REQUIRE(job.gpu_work.size() == 1);
    const GpuWork& kernel = job.gpu_work[0];
    CHECK(job.names[kernel.name] == "_Z3addPf");
    CHECK(kernel.begin_ns == kEpochNs + 500);
    CHECK(kernel.duration_ns() == 100);
    CHECK(kernel.queued_ns == kEpochNs + 490);
    CHECK(std::array{kernel.correlation, kernel.device, kernel.context, kernel.stream} ==
          std::array{9u, 1u, 2u, 7u});
    CHECK(kernel.grid == std::array{128u, 3u, 1u});
    CHECK(kernel.block == std::array{256u, 2u, 4u});
    CHECK(std::array{kernel.static_shared_bytes, kernel.dynamic_shared_bytes, kernel.registers,
                     kernel.graph} == std::array{64u, 96u, 40u, 5u});
    CHECK(kernel.graph_node == 77);
    CHECK(kernel.on_device());
    CHECK(job.totals.events == 1);
    CHECK(job.totals.unknown_records == 0);
}

TEST_CASE("gpu: copies, memsets, waits, overheads and events have what their kinds have") {
    CutDump gpu;
    gpu.told->gpu(
        RecordKind::kGpuCopy, "",
        {10, 20, pair(1, 2), pair(3, 4), 4096, 1 | 3 << 8 | 1 << 16 | 6ull << 32, 78, pair(0, 2)},
        10);
    gpu.told->gpu(RecordKind::kGpuMemset, "", {30, 40, pair(2, 1), 0, 512, pair(255, 8), 79}, 3);
    gpu.told->gpu(RecordKind::kGpuSync, "", {50, 60, pair(3, 17), pair(4, 5)}, 1);
    gpu.told->gpu(RecordKind::kGpuOverhead, "", {70, 80, pair(4, 5 << 16), pair(2, 4000), 101});
    gpu.told->gpu(RecordKind::kGpuOverhead, "", {81, 82, pair(0, 3 << 16), pair(5, 1), pair(6, 7)});
    gpu.told->gpu(RecordKind::kGpuEvent, "", {90, 17, pair(5, 1), pair(6, 7)}, 1);
    const Job job = gpu.load();
    REQUIRE(job.gpu_work.size() == 6);
    const GpuWork& copy = job.gpu_work[0];
    CHECK(copy.detail == 10);
    CHECK(copy.bytes == 4096);
    CHECK(copy.source_memory == GpuMemory::kPageable);
    CHECK(copy.destination_memory == GpuMemory::kDevice);
    CHECK(copy.asynchronous);
    CHECK(copy.graph_node == 78);
    CHECK(copy.source_device == 0);
    CHECK(copy.destination_device == 2);
    CHECK(job.gpu_work[1].value == 255);
    CHECK(job.gpu_work[1].bytes == 512);
    CHECK(job.gpu_work[2].value == 17);
    CHECK(job.gpu_work[2].stream == 5);
    CHECK_FALSE(job.gpu_work[2].on_device());
    CHECK(job.gpu_work[3].thread == 101);
    CHECK(job.gpu_work[3].value == 5 << 16);
    CHECK(job.gpu_work[4].thread == 0);
    CHECK(job.gpu_work[4].device == 1);
    CHECK(job.gpu_work[4].stream == 7);
    CHECK(job.gpu_work[5].value == 17);
    CHECK(job.gpu_work[5].duration_ns() == 0);
}

TEST_CASE(
    "gpu: work belongs to the first call with its correlation, to the range and the request of "
    "that call's thread") {
    CutDump gpu;
    gpu.thread->serve(100, 7);
    gpu.thread->range("inner", 110, 190);
    gpu.thread->range("outer", 100, 290);
    gpu.thread->stop_serving(300);
    gpu.thread->range("later", 310, 320);
    gpu.kernel(500, 600, 9);
    gpu.call("cuLaunchKernel", 121, 125, 9);
    gpu.call("cudaLaunchKernel", 120, 128, 9);
    gpu.call("cudaFree", 200, 210, 10);
    gpu.call("cudaFree", 305, 306, 11);
    gpu.call("cudaFree", 315, 316, 12, kThread + 7);
    gpu.kernel(700, 800, 13);
    const Job job = gpu.load();
    REQUIRE(job.gpu_calls.size() == 5);
    REQUIRE(job.gpu_work.size() == 2);
    const GpuCall& launch = job.gpu_calls[job.gpu_work[0].call];
    CHECK(job.names[launch.name] == "cudaLaunchKernel");
    CHECK(gpu.range_of(job, launch) == "inner");
    REQUIRE(launch.request < job.halves.size());
    CHECK(job.halves[launch.request].key == 7);
    CHECK(gpu.range_of(job, job.gpu_calls[2]) == "outer");
    CHECK(gpu.range_of(job, job.gpu_calls[3]) == "none");
    CHECK(job.gpu_calls[3].request == kNone);
    CHECK(job.gpu_calls[4].thread_lane == kNone);
    CHECK(job.gpu_work[1].call == kNone);
}

TEST_CASE("gpu: of two processes with one correlation each has its own call") {
    CutDump gpu;
    gpu.dump.process(1, 4001);
    LaneMaker& other = gpu.dump.lane(1, 0, 200);
    other.gpu(RecordKind::kGpuKernel, "kernel", {500, 600, 9});
    other.gpu(RecordKind::kGpuApi, "theirs", {300, 310, 9, pair(200, 1)});
    gpu.kernel(510, 610, 9);
    gpu.call("ours", 320, 330, 9);
    gpu.dump.end(1, fbs::Fate::Running, 1000);
    const Job job = gpu.load();
    REQUIRE(job.gpu_work.size() == 2);
    for (const GpuWork& work : job.gpu_work) {
        REQUIRE(work.call != kNone);
        CHECK(job.gpu_calls[work.call].process == work.process);
    }
}

TEST_CASE("gpu: iterations keep work with its call, and work without one by its own times") {
    fbs::IterationsT kept;
    kept.name = "step";
    kept.asked = kept.count = 1;
    kept.begin_ticks = 200;
    kept.end_ticks = 300;
    CutDump gpu;
    gpu.call("in", 290, 295, 1);
    gpu.kernel(400, 500, 1);
    gpu.call("before", 190, 195, 2);
    gpu.kernel(250, 260, 2);
    gpu.kernel(270, 280, 3);
    gpu.kernel(300, 310, 4);
    const Job job = gpu.load(&kept);
    REQUIRE(job.gpu_calls.size() == 1);
    REQUIRE(job.gpu_work.size() == 2);
    CHECK(job.gpu_work[0].correlation == 3);
    CHECK(job.gpu_work[0].call == kNone);
    CHECK(job.gpu_work[1].correlation == 1);
    CHECK(job.gpu_work[1].call == 0);
    CHECK(job.totals.outside_iterations == 3);
}

TEST_CASE("gpu: a device that is told again and again is one device, as it was told last") {
    CutDump gpu;
    for (std::uint64_t i = 0; i < 3; ++i)
        gpu.told->gpu(RecordKind::kGpuDevice, "H100", {100 + i, 80 + i, pair(0, 132), pair(9, 0)});
    gpu.told->gpu(RecordKind::kGpuDevice, "A100", {100, 40, pair(1, 108), pair(8, 0)});
    const Job job = gpu.load();
    REQUIRE(job.gpu_devices.size() == 2);
    CHECK(job.gpu_devices[0].memory_bytes == 82);
    CHECK(job.gpu_devices[0].processors == 132);
    CHECK(job.names[job.gpu_devices[1].name] == "A100");
}

TEST_CASE("gpu: what CUPTI has lost the times of is left out and counted") {
    CutDump gpu;
    gpu.call("cudaLaunchKernel", 100, 110, 1);
    gpu.kernel(0, 0, 1);
    gpu.kernel(120, 0, 1);
    gpu.kernel(120, 130, 1);
    gpu.told->gpu(RecordKind::kGpuEvent, "", {0, 17, pair(1, 0), pair(1, 7)});
    gpu.told->gpu(RecordKind::kGpuEvent, "", {140, 0, pair(1, 0), pair(1, 7)});
    const Job job = gpu.load();
    CHECK(job.gpu_work.size() == 2);
    CHECK(job.gpu_work[0].begin_ns == kEpochNs + 120);
    CHECK(job.totals.untimed == 3);
    CHECK(job.totals.passed_over == 3);
    CHECK(job.gpu_calls[0].first_work == 0);
    CHECK(job.gpu_work[0].next_work == kNone);
}
