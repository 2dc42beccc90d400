// The GPU on a time line: Kineto's fields, rows of streams, arrows, devices, counters; one file a rank; gzip.
#include <doctest/doctest.h>
#include <zlib.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "gpu_dump.hpp"
#include "gpu_job.hpp"
#include "viewer_export/out/gpu_shape.hpp"
#include "viewer_export/out/rank_files.hpp"
#include "viewer_export/out/trace.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export;
using nlohmann::json;
using ringside::schema::RecordKind;

namespace {

struct GpuTrace {
    explicit GpuTrace(int ranks = 1) {
        write_gpu_job(directory.path(), ranks);
        job = loaded(directory.path());
        const auto written = write_chrome(job, directory / "trace.json");
        REQUIRE(written);
        counts = *written;
        trace = json::parse(read_text(directory / "trace.json"));
    }
    std::vector<json> of_category(const std::string& category,
                                  const std::string& phase = "X") const {
        std::vector<json> events;
        for (const json& event : trace["traceEvents"]) {
            if (event.value("cat", "") == category && event["ph"] == phase) events.push_back(event);
        }
        return events;
    }
    TemporaryDirectory directory;
    model::Job job;
    TraceCounts counts;
    json trace;
};

json events_of(const std::filesystem::path& path) {
    return json::parse(read_text(path))["traceEvents"];
}

std::set<std::string> keys(const json& object) {
    std::set<std::string> result;
    for (const auto& item : object.items()) result.insert(item.key());
    return result;
}

}  // namespace

TEST_CASE(
    "trace: a kernel has Kineto's fields, its name as it was written, its device and stream") {
    const GpuTrace gpu;
    const auto kernels = gpu.of_category("kernel");
    REQUIRE(kernels.size() == 9);
    const json& relu = kernels.at(1);
    CHECK(relu["name"] == "void at::native::vectorized_elementwise_kernel<4>(int)");
    CHECK(relu["pid"] == 0);
    CHECK(relu["tid"] == 7);
    CHECK(relu["dur"] == 40.0);
    const json& args = relu["args"];
    CHECK(keys(args) == std::set<std::string>{"External id", "queued", "device", "context",
                                              "stream", "correlation", "registers per thread",
                                              "shared memory", "blocks per SM", "warps per SM",
                                              "grid", "block", "est. achieved occupancy %",
                                              "Record"});
    CHECK(args["grid"] == json({264, 1, 1}));
    CHECK(args["block"] == json({256, 1, 1}));
    CHECK(args["blocks per SM"] == 2.0);
    CHECK(args["warps per SM"] == 16.0);
    CHECK(args["est. achieved occupancy %"] == 25);
    CHECK(args["registers per thread"] == 32);
    CHECK(args["shared memory"] == 1024);
    CHECK(gpu.of_category("kernel").back()["tid"] == 20);
}

TEST_CASE(
    "trace: an operator, its call and its kernel find each other by external id, correlation and "
    "arrow") {
    const GpuTrace gpu;
    std::map<json, std::string> operators;
    for (const json& event : gpu.of_category("cpu_op"))
        operators[event["args"]["External id"]] = event["name"];
    std::map<json, json> calls;
    for (const json& event : gpu.of_category("cuda_runtime"))
        calls[event["args"]["correlation"]] = event;
    for (const json& kernel : gpu.of_category("kernel")) {
        const json& call = calls.at(kernel["args"]["correlation"]);
        CHECK(call["args"]["External id"] == kernel["args"]["External id"]);
        CHECK(call["tid"] == 100);
        CHECK(call["args"]["cbid"] == 211);
        const std::string by = operators.at(kernel["args"]["External id"]);
        CHECK(
            (kernel["name"].get<std::string>().starts_with("nccl") == (by == "c10d::allreduce_")));
    }
    CHECK(gpu.counts.launches == 12);
    const auto starts = gpu.of_category("ac2g", "s");
    const auto ends = gpu.of_category("ac2g", "f");
    REQUIRE(starts.size() == 12);
    REQUIRE(ends.size() == 12);
    for (std::size_t i = 0; i < starts.size(); ++i) {
        CHECK(starts[i]["id"] == ends[i]["id"]);
        CHECK(starts[i]["tid"] == 100);
        CHECK(ends[i]["bp"] == "e");
        CHECK(ends[i]["pid"] == 0);
    }
    CHECK(gpu.counts.fwdbwd == 3);
}

TEST_CASE("trace: copies, waits and devices are named and told as Kineto does") {
    const GpuTrace gpu(2);
    const auto copies = gpu.of_category("gpu_memcpy");
    REQUIRE(copies.size() == 6);
    CHECK(copies[0]["name"] == "Memcpy HtoD (Pageable -> Device)");
    CHECK(copies[0]["args"]["bytes"] == 4096);
    CHECK(std::abs(copies[0]["args"]["memory bandwidth (GB/s)"].get<double>() - 0.4096) < 1e-12);
    CHECK(gpu.of_category("cuda_sync").at(0)["name"] == "Context Sync");
    CHECK(gpu.of_category("cuda_sync").at(0)["args"]["stream"] == -1);
    const json& devices = gpu.trace["deviceProperties"];
    REQUIRE(devices.size() == 4);  // both ranks told of both devices of their host
    CHECK(devices[1]["id"] == 1);
    CHECK(devices[1]["name"] == "Test GPU");
    CHECK(devices[1]["numSms"] == 132);
    CHECK(devices[1]["totalGlobalMem"] == 80ull << 30);
    std::set<std::string> labels;
    for (const json& event : gpu.trace["traceEvents"]) {
        if (event["name"] == "process_labels") labels.insert(event["args"]["labels"]);
    }
    CHECK(labels.contains("GPU 0"));
    CHECK(labels.contains("GPU 1"));
}

TEST_CASE("trace: counters tell iterations' times, what was lost and how much a GPU did at once") {
    const GpuTrace gpu;
    std::map<std::string, std::vector<std::int64_t>> values;
    for (const json& event : gpu.trace["traceEvents"]) {
        if (event["ph"] == "C") values[event["name"]].push_back(event["args"]["value"]);
    }
    CHECK(values["iteration time (ns)"] == std::vector<std::int64_t>{250'000, 250'000, 250'000, 0});
    CHECK(values["lost records"] == std::vector<std::int64_t>{0});
    const std::vector<std::int64_t> step{1, 0, 1, 1, 2, 1, 0};  // copy; mm, relu, nccl beside it
    REQUIRE(values["GPU busy"].size() == 3 * step.size());
    CHECK(std::equal(step.begin(), step.end(), values["GPU busy"].begin()));
    CHECK(gpu.counts.derived == 4 + 1 + 21);
}

TEST_CASE(
    "trace: one file a rank has its rank with a space before it, its pid, and no other's events") {
    TemporaryDirectory directory;
    write_gpu_job(directory.path(), 2);
    const model::Job job = loaded(directory.path());
    const auto files = rank_files(job);
    REQUIRE(files.size() == 2);
    for (int rank = 0; rank < 2; ++rank) {
        const RankFile& file = files[static_cast<std::size_t>(rank)];
        CHECK(file.name == "host-node" + std::to_string(rank) + "_" + std::to_string(4000 + rank) +
                               "." + std::to_string(kEpochNs + 1'000'000) + ".pt.trace.json");
        const auto counts = write_chrome(job, directory / file.name, {.processes = file.processes});
        REQUIRE(counts);
        CHECK(counts->gpu_work == 15);
        const std::string text = read_text(directory / file.name);
        CHECK(text.find("\"distributedInfo\": {\"rank\": " + std::to_string(rank) +
                        ", \"world_size\": 2, \"backend\": \"nccl\"}") != std::string::npos);
        const json trace = json::parse(text);
        CHECK(trace["deviceProperties"].size() == 2);
        CHECK(trace["host_name"] == "host-node" + std::to_string(rank));
        for (const json& event : trace["traceEvents"]) {
            if (event["ph"] == "X" && event["cat"] == "kernel") CHECK(event["pid"] == rank);
            if (event["ph"] == "X" && event["cat"] == "cpu_op") CHECK(event["pid"] == 4000 + rank);
        }
    }
}

TEST_CASE(
    "trace: processes of one rank are one file, those without a rank one each, the silent in "
    "none") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000, 0, "trainer");
    dump.process(1, 4001, 0, "loader");
    dump.process(2, 4002);
    dump.process(3, 4003);
    dump.lane(0, 0, 100).range("a", 0, 10);
    LaneMaker& loader = dump.lane(1, 0, 101);
    loader.range("b", 0, 10);
    loader.range("c", 20, 30);
    dump.lane(2, 0, 102).range("d", 0, 10);
    dump.footer(100);
    dump.write(directory / "alpha.rsd");
    const auto files = rank_files(loaded(directory.path()));
    REQUIRE(files.size() == 2);
    CHECK(files[0].processes == std::vector<bool>{false, false, true, false});
    CHECK(files[1].processes == std::vector<bool>{true, true, false, false});
    CHECK(files[1].name.starts_with("host-alpha_4001."));
}

TEST_CASE(
    "trace: work that overlaps in part on one stream lies on two rows, and says its stream on "
    "both") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000, 0);
    LaneMaker& lane = dump.lane(0, 0, 100);
    const auto kernel = [&](std::uint64_t begin, std::uint64_t end) {
        lane.gpu(RecordKind::kGpuKernel, "k", {begin, end, 0, 1 | std::uint64_t{7} << 32});
    };
    kernel(100, 200);
    kernel(150, 250);
    kernel(300, 400);
    dump.footer(1000);
    dump.write(directory / "alpha.rsd");
    REQUIRE(write_chrome(loaded(directory.path()), directory / "trace.json"));
    const json trace = json::parse(read_text(directory / "trace.json"));
    std::map<std::int64_t, int> rows;
    for (const json& event : trace["traceEvents"]) {
        if (event["ph"] != "X") continue;
        ++rows[event["tid"]];
        CHECK(event["args"]["stream"] == 7);
        CHECK_FALSE(event["args"].contains("blocks per SM"));  // nobody told of the device
    }
    CHECK(rows.size() == 2);
    CHECK(rows[7] == 2);
}

TEST_CASE(
    "trace: a user's range is drawn on each stream from its first work's begin to its last one's "
    "end, around it") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000, 0);
    LaneMaker& lane = dump.lane(0, 0, 100);
    const auto launched = [&](std::uint64_t call, std::uint64_t begin, std::uint64_t stream) {
        lane.gpu(RecordKind::kGpuApi, "cudaLaunchKernel",
                 {call, call + 5, call, 100 | std::uint64_t{211} << 32});
        lane.gpu(RecordKind::kGpuKernel, "k", {begin, begin + 50, call, 1 | stream << 32});
    };
    launched(20, 100, 7);
    launched(30, 200, 7);
    launched(40, 150, 20);
    lane.op("aten::mm", 15, 35, -1, 1);
    lane.range("forward", 10, 50, static_cast<int>(ringside::schema::TorchScope::kUser));
    dump.footer(1000);
    dump.write(directory / "alpha.rsd");
    const auto counts = write_chrome(loaded(directory.path()), directory / "trace.json");
    REQUIRE(counts);
    CHECK(counts->gpu_annotations == 2);
    CHECK(counts->launches == 3);
    const json trace = json::parse(read_text(directory / "trace.json"));
    std::map<std::int64_t, json> drawn;
    std::map<std::int64_t, std::string> first;
    json external;
    for (const json& event : trace["traceEvents"]) {
        if (event["ph"] != "X") continue;
        if (event["name"] == "forward" && event["cat"] == "user_annotation")
            external = event["args"]["External id"];
        if (event["pid"] == 0) first.try_emplace(event["tid"], event["cat"]);
        if (event["cat"] == "gpu_user_annotation") drawn[event["tid"]] = event;
    }
    CHECK(drawn[7]["name"] == "forward");
    CHECK(drawn[7]["ts"] == 0.090);
    CHECK(drawn[7]["dur"] == 0.150);
    CHECK(drawn[20]["dur"] == 0.050);
    CHECK(drawn[7]["args"]["External id"] == external);
    CHECK(first[7] == "gpu_user_annotation");  // outer before inner
}

TEST_CASE("trace: devices that no machine has are drawn, each under a number of its own") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000, 0);
    LaneMaker& lane = dump.lane(0, 0, 100);
    constexpr std::uint64_t kDevices = 3000;
    for (std::uint64_t i = 0; i < kDevices; ++i) {
        const std::uint64_t device = i < 2 ? i : 0x7fffffff - kDevices + i;
        lane.gpu(RecordKind::kGpuKernel, "k", {100, 200, device << 32, (i + 1) << 32});
        lane.gpu(RecordKind::kGpuDevice, "huge", {1, 1, device | 1ull << 32});
    }
    lane.gpu(RecordKind::kGpuKernel, "k", {100, 200, 0xffffffffull << 32, 1});
    dump.footer(1000);
    dump.write(directory / "alpha.rsd");
    const auto counts = write_chrome(loaded(directory.path()), directory / "trace.json");
    REQUIRE(counts);
    CHECK(counts->gpu_work == kDevices + 1);
    CHECK(counts->derived == 1 + 2 * 2);  // losses; how busy the two were that may be
    std::map<std::string, std::int64_t> pids;
    std::set<std::int64_t> places;
    for (const json& event : events_of(directory / "trace.json")) {
        if (event["name"] == "process_labels") pids[event["args"]["labels"]] = event["pid"];
        if (event["name"] == "process_sort_index")
            places.insert(event["args"]["sort_index"].get<std::int64_t>());
    }
    REQUIRE(pids.size() == kDevices + 2);
    CHECK(pids["GPU 1"] == 1);
    CHECK(pids["GPU 2147483646"] > 4000);
    std::set<std::int64_t> each;
    for (const auto& [label, pid] : pids) each.insert(pid);
    CHECK(each.size() == pids.size());
    CHECK(*places.rbegin() == 5'000'000 + 256 + static_cast<std::int64_t>(kDevices));
}

TEST_CASE("trace: .json.gz unpacks to the same bytes as .json") {
    TemporaryDirectory directory;
    write_gpu_job(directory.path(), 1, 200);
    const model::Job job = loaded(directory.path());
    const auto plain = write_chrome(job, directory / "t.json", {.trace_name = "t"});
    const auto packed = write_chrome(job, directory / "t.json.gz", {.trace_name = "t"});
    REQUIRE(plain);
    REQUIRE(packed);
    CHECK(packed->bytes < plain->bytes / 4);
    CHECK(packed->bytes == std::filesystem::file_size(directory / "t.json.gz"));
    std::string text(plain->bytes + 1, '\0');
    const gzFile file = gzopen((directory / "t.json.gz").c_str(), "rb");
    REQUIRE(file != nullptr);
    const int read = gzread(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    REQUIRE(read == static_cast<int>(plain->bytes));
    text.pop_back();
    CHECK(text == read_text(directory / "t.json"));
}

TEST_CASE("gpu shape: occupancy is limited by threads, registers, shared memory and the grid") {
    model::GpuDevice device{};
    device.processors = 100;
    device.capability_major = 9;
    device.warp_threads = 32;
    device.processor_threads = 2048;
    device.processor_registers = 65536;
    device.processor_shared_bytes = 233472;
    device.processor_blocks = 32;
    model::GpuWork kernel{};
    kernel.grid = {10000, 1, 1};
    kernel.block = {256, 1, 1};
    kernel.registers = 32;
    CHECK(trace::shape_of(kernel, device).occupancy_percent == 100);
    kernel.registers = 128;  // 16 warps' registers: 2 blocks
    CHECK(trace::shape_of(kernel, device).occupancy_percent == 25);
    kernel.registers = 32;
    kernel.dynamic_shared_bytes = 100 * 1024;
    CHECK(trace::shape_of(kernel, device).occupancy_percent == 25);
    kernel.dynamic_shared_bytes = 0;
    kernel.grid = {50, 1, 1};  // half a block a processor
    CHECK(trace::shape_of(kernel, device).occupancy_percent == 6);
    CHECK(trace::shape_of(kernel, model::GpuDevice{}).occupancy_percent == 0);
}
