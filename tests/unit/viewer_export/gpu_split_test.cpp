// What a device's time went to, added up by hand.
#include <doctest/doctest.h>

#include "gpu_dump.hpp"
#include "gpu_job.hpp"
#include "viewer_export/model/gpu_split.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export::model;
using ringside::schema::RecordKind;

namespace {

/// Its GPU's work comes in any order.
struct Device : GpuDump {
    void kernel(const char* name, std::uint64_t begin, std::uint64_t end,
                std::uint32_t device = 0) const {
        GpuDump::kernel(name, begin, end, 0, 7, device);
    }
    void copy(std::uint64_t begin, std::uint64_t end, std::uint32_t device = 0) const {
        told->gpu(RecordKind::kGpuCopy, "", {begin, end, pair(0, device), pair(1, 7), 4096}, 1);
    }
    void memset(std::uint64_t begin, std::uint64_t end) const {
        told->gpu(RecordKind::kGpuMemset, "", {begin, end, 0, pair(1, 7), 512}, 3);
    }
    GpuSplit split() {
        job = load();
        return split_gpu(job);
    }
    Job job;
};

/// time, compute, communication, exposed, copies, idle
using Sums = std::array<std::int64_t, 6>;
Sums sums(const GpuTime& time) {
    return {time.time_ns,    time.compute_ns, time.communication_ns,
            time.exposed_ns, time.copies_ns,  time.idle_ns()};
}

constexpr const char* kNccl = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage)";

}  // namespace

TEST_CASE("gpu split: computation hides communication, and both hide copies") {
    Device gpu;
    gpu.copy(100, 250);            // 100 alone, then under the kernel
    gpu.kernel("mm", 200, 400);    //
    gpu.kernel("relu", 300, 450);  // 50 beyond mm
    gpu.kernel(kNccl, 420, 600);   // 30 hidden, 150 exposed
    gpu.memset(580, 650);          // 20 under nccl, 50 alone
    gpu.kernel("last", 800, 900);  // 150 idle before it
    const GpuSplit split = gpu.split();
    REQUIRE(split.devices.size() == 1);
    CHECK(sums(split.devices[0].whole) == Sums{800, 350, 180, 150, 150, 150});
    CHECK(split.devices[0].whole.overlapped_ns() == 30);
    CHECK(split.devices[0].steps.empty());
    CHECK(split.steps_of(0) == nullptr);
}

TEST_CASE("gpu split: work that touches or repeats another's time counts once") {
    Device gpu;
    gpu.kernel("a", 100, 200);
    gpu.kernel("b", 200, 300);
    gpu.kernel("c", 100, 300);
    gpu.kernel("d", 150, 160);
    gpu.kernel("nothing", 400, 400);
    CHECK(sums(gpu.split().devices.at(0).whole) == Sums{300, 200, 0, 0, 0, 100});
}

TEST_CASE("gpu split: work is cut at an iteration's boundary, and idle before its first work") {
    Device gpu;
    gpu.boundaries({1000, 2000, 3000, 3500});
    gpu.kernel("before", 500, 600);
    gpu.kernel("across two", 900, 1100);  // 100 in the first
    gpu.kernel(kNccl, 1900, 3200);        // 100, all of the second, 200 of the third
    gpu.kernel("relu", 2500, 2600);
    gpu.copy(3400, 3800);  // 100 in the third
    const GpuSplit split = gpu.split();
    REQUIRE(split.devices.size() == 1);
    const DeviceSplit& device = split.devices[0];
    REQUIRE(device.steps.size() == 3);
    CHECK(sums(device.steps[0]) == Sums{1000, 100, 100, 100, 0, 800});
    CHECK(sums(device.steps[1]) == Sums{1000, 100, 1000, 900, 0, 0});
    CHECK(sums(device.steps[2]) == Sums{500, 0, 200, 200, 100, 200});
    CHECK(sums(device.in_steps) == Sums{2500, 200, 1300, 1200, 100, 1000});
    CHECK(sums(device.whole) == Sums{3300, 400, 1300, 1200, 400, 1300});
    REQUIRE(split.steps_of(0) != nullptr);
    CHECK(split.steps_of(0)->at(gpu.job, 2).number == 2);
}

TEST_CASE("gpu split: an iteration without any work is idle, wherever it lies") {
    Device gpu;
    gpu.boundaries({100, 200, 300, 400, 500});
    gpu.kernel("k", 210, 240);
    gpu.kernel("k", 310, 320);
    const GpuSplit split = gpu.split();
    std::vector<std::int64_t> idle;
    for (const GpuTime& step : split.devices.at(0).steps) idle.push_back(step.idle_ns());
    CHECK(idle == std::vector<std::int64_t>{100, 70, 90, 100});
}

TEST_CASE("gpu split: iterations are of the most frequent boundary") {
    Device gpu;
    gpu.boundaries({100, 400}, "epoch");
    gpu.boundaries({100, 200, 300}, "step");
    gpu.kernel("k", 110, 120);
    const GpuSplit split = gpu.split();
    REQUIRE(split.steps.size() == 1);
    CHECK(split.devices.at(0).steps.size() == 2);
}

TEST_CASE("gpu split: devices have their own times, and all of a process' together one more") {
    Device gpu;
    gpu.kernel("k", 100, 200, 0);
    gpu.kernel("k", 150, 300, 1);
    gpu.copy(300, 350, 0);
    gpu.kernel(kNccl, 320, 400, 1);
    const GpuSplit split = gpu.split();
    REQUIRE(split.devices.size() == 3);
    CHECK(split.devices[0].device == 0);
    CHECK(sums(split.devices[0].whole) == Sums{250, 100, 0, 0, 50, 100});
    CHECK(split.devices[1].device == 1);
    CHECK(sums(split.devices[1].whole) == Sums{250, 150, 80, 80, 0, 20});
    CHECK(split.devices[2].device == kAllDevices);
    CHECK(sums(split.devices[2].whole) == Sums{300, 200, 80, 80, 20, 0});
}

TEST_CASE("gpu split: the ranks of a job have each its own, waits are no work") {
    TemporaryDirectory directory;
    write_gpu_job(directory.path(), 2);
    const GpuSplit split = split_gpu(loaded(directory.path()));
    REQUIRE(split.devices.size() == 2);
    for (const DeviceSplit& device : split.devices) {
        // A step: copy 10, mm and relu 60 + 40, nccl 60 of which 20 beside relu; from 20 to 180 of 250.
        CHECK(sums(device.in_steps) == Sums{750'000, 300'000, 180'000, 120'000, 30'000, 300'000});
        CHECK(sums(device.whole) == Sums{660'000, 300'000, 180'000, 120'000, 30'000, 210'000});
    }
}

TEST_CASE("gpu split: without work there is nothing") {
    Device gpu;
    gpu.boundaries({100, 200});
    const GpuSplit split = gpu.split();
    CHECK(split.devices.empty());
    CHECK(split.steps_of(0) != nullptr);
}
