// Ranges as the GPU ran them, by hand.
#include <doctest/doctest.h>

#include <string>

#include "gpu_dump.hpp"
#include "viewer_export/model/gpu_projection.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export::model;
using ringside::schema::RecordKind;

namespace {

struct Launches : GpuDump {
    /// On stream 20.
    void copied(std::uint64_t at, std::uint64_t begin, std::uint64_t end, RecordKind kind) {
        call("cudaMemcpyAsync", at, at + 1, ++correlation);
        told->gpu(kind, "", {begin, end, correlation, pair(1, 20)});
    }
    /// "inner 7 1000..1200 2+0" by line: name, stream (device.stream where that is not 0), from..to, kernels+copies.
    std::vector<std::string> projected() {
        job = load();
        std::vector<std::string> lines;
        for (const Projection& each : project_ranges(job)) {
            const Range& range = job.lanes[each.lane].ranges[each.range];
            lines.push_back(job.names[range.name] + " " +
                            (each.device == 0 ? "" : std::to_string(each.device) + ".") +
                            std::to_string(each.stream) + " " +
                            std::to_string(each.begin_ns - kEpochNs) + ".." +
                            std::to_string(each.end_ns - kEpochNs) + " " +
                            std::to_string(each.kernels) + "+" + std::to_string(each.copies));
        }
        return lines;
    }
    using Lines = std::vector<std::string>;
    Job job;
};

}  // namespace

TEST_CASE("gpu projection: a range reaches from its first kernel's begin to its last one's end") {
    Launches gpu;
    gpu.thread->range("r", 100, 200);
    gpu.launch(110, 1000, 1100);
    gpu.launch(120, 1150, 1200);
    gpu.launch(130, 1050, 1300);  // beside them
    CHECK(gpu.projected() == Launches::Lines{"r 7 1000..1300 3+0"});
}

TEST_CASE(
    "gpu projection: what a range's inner ones launched is the outer one's, too, a stream at a "
    "time") {
    Launches gpu;
    gpu.thread->range("inner", 120, 150);
    gpu.thread->range("again", 160, 170);
    gpu.thread->range("outer", 100, 200);
    gpu.thread->range("idle", 210, 220);
    gpu.launch(110, 1000, 1100);
    gpu.launch(130, 1100, 1200);
    gpu.copied(131, 1110, 1190, RecordKind::kGpuCopy);
    gpu.copied(165, 1250, 1300, RecordKind::kGpuMemset);
    gpu.launch(180, 1300, 1400, 7, 1);
    gpu.launch(205, 2000, 2100);  // in none
    CHECK(gpu.projected() == Launches::Lines{"outer 7 1000..1200 2+0", "inner 7 1100..1200 1+0",
                                             "outer 20 1110..1300 0+2", "inner 20 1110..1190 0+1",
                                             "again 20 1250..1300 0+1",
                                             "outer 1.7 1300..1400 1+0"});
}

TEST_CASE(
    "gpu projection: ranges that overlap in part have each what was launched within it, once") {
    Launches gpu;
    gpu.thread->range("a", 100, 200);
    gpu.thread->range("b", 150, 250);
    gpu.thread->range("c", 160, 280);
    gpu.thread->range("all", 50, 300);
    gpu.launch(60, 1000, 1010);
    gpu.launch(120, 1020, 1030);  // a
    gpu.launch(170, 1040, 1050);  // a, b, c
    gpu.launch(210, 1060, 1070);  // b, c
    gpu.launch(240, 1080, 1090);  // b, c
    gpu.launch(260, 1100, 1110);  // c
    gpu.launch(290, 1120, 1130);
    CHECK(gpu.projected() == Launches::Lines{"all 7 1000..1130 7+0", "a 7 1020..1050 2+0",
                                             "c 7 1040..1110 4+0", "b 7 1040..1090 3+0"});
}

TEST_CASE("gpu projection: a range that never ended has what it launched so far") {
    Launches gpu;
    gpu.thread->range("before", 50, 60);
    gpu.thread->open("open", 100);
    gpu.launch(55, 500, 600);
    gpu.launch(120, 1000, 1100);
    CHECK(gpu.projected() == Launches::Lines{"before 7 500..600 1+0", "open 7 1000..1100 1+0"});
}

TEST_CASE("gpu projection: a thread's launches are none of another thread's ranges") {
    Launches gpu;
    LaneMaker& other = gpu.dump.lane(0, 2, 101);
    gpu.thread->range("mine", 100, 200);
    other.range("theirs", 100, 200);
    gpu.launch(110, 1000, 1100);
    gpu.launch(111, 1200, 1300, 7, 0, 101);
    gpu.launch(112, 1400, 1500, 7, 0, 102);
    CHECK(gpu.projected() == Launches::Lines{"mine 7 1000..1100 1+0", "theirs 7 1200..1300 1+0"});
}

TEST_CASE("gpu projection: one call's work of many, as a graph's, all counts") {
    Launches gpu;
    gpu.thread->range("graph", 100, 200);
    gpu.launch(110, 1000, 1100);
    gpu.told->gpu(RecordKind::kGpuKernel, "k", {1200, 1300, 1, pair(1, 7)});
    gpu.told->gpu(RecordKind::kGpuKernel, "k", {1150, 1350, 1, pair(1, 8)});
    CHECK(gpu.projected() == Launches::Lines{"graph 7 1000..1300 2+0", "graph 8 1150..1350 1+0"});
}

TEST_CASE("gpu projection: each level of a deep nest has all beneath it") {
    constexpr std::uint64_t kDepth = 1000;
    Launches gpu;
    for (std::uint64_t i = 0; i < kDepth; ++i) gpu.thread->range("r", kDepth - i, 10 * kDepth + i);
    for (std::uint64_t i = 0; i < kDepth; ++i)
        gpu.launch(2 * kDepth + 2 * i, 50'000 + 10 * i, 50'005 + 10 * i,
                   static_cast<std::uint32_t>(i % 3));
    const auto lines = gpu.projected();
    CHECK(lines.size() == 3 * kDepth);
    CHECK(lines.front() == "r 0 50000..59995 334+0");
    CHECK(lines.back() == "r 2 50020..59985 333+0");
}
