// The GPU on a time line: iterations as streams ran them, waits, and what an export takes.
#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "gpu_dump.hpp"
#include "gpu_job.hpp"
#include "viewer_export/out/trace.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export;
using nlohmann::json;
using ringside::schema::RecordKind;

namespace {

json events_of(const std::filesystem::path& path) {
    return json::parse(read_text(path))["traceEvents"];
}

}  // namespace

TEST_CASE(
    "trace: an iteration is drawn on each stream from the begin of what was launched within it to "
    "the end, on whatever thread") {
    GpuDump gpu;
    gpu.boundaries({100, 200, 300, 400});
    LaneMaker& other = gpu.dump.lane(0, 2, 102);
    other.range("names the thread", 90, 95);
    gpu.launch(90, 1000, 1100);       // before the first
    gpu.launch(100, 1100, 1200);      // of step 0
    gpu.launch(150, 1150, 1180, 20);  //
    gpu.launch(160, 1300, 1400, 7, 0, 102);
    gpu.launch(199, 1250, 1280);
    gpu.launch(200, 1390, 1500);  // of step 1, in part beside step 0's; none of step 2
    gpu.launch(400, 2000, 2100);  // after the last
    const model::Job job = gpu.load();
    for (const bool packets : {false, true}) {
        const auto write = packets ? &write_perfetto : &write_chrome;
        const auto counts = write(job, gpu.directory / "trace", {});
        REQUIRE(counts);
        CHECK(counts->gpu_annotations == 3);
        CHECK(counts->iterations == 3);
    }
    REQUIRE(write_chrome(job, gpu.directory / "trace.json"));
    std::map<json, json> iterations;
    std::vector<std::string> drawn;
    for (const json& event : events_of(gpu.directory / "trace.json")) {
        if (event["ph"] != "X") continue;
        const auto ns = [&](const char* key) {
            return std::to_string(std::lround(event[key].get<double>() * 1000));
        };
        if (event["cat"] == "user_annotation" && event["args"].contains("Boundary"))
            iterations[event["args"]["External id"]] = event["name"];
        if (event["cat"] != "gpu_user_annotation") continue;
        drawn.push_back(event["name"].get<std::string>() + " " + ns("ts") + "+" + ns("dur") + " " +
                        event["args"].dump());
    }
    CHECK(iterations.size() == 3);
    REQUIRE(drawn.size() == 3);
    std::map<std::string, std::string> external;
    for (const auto& [id, name] : iterations) external[name] = json{{"External id", id}}.dump();
    CHECK(drawn[0] == "ProfilerStep#0 1010+300 " + external["ProfilerStep#0"]);
    CHECK(drawn[1] == "ProfilerStep#0 1060+30 " + external["ProfilerStep#0"]);
    CHECK(drawn[2] == "ProfilerStep#1 1300+110 " + external["ProfilerStep#1"]);
}

TEST_CASE("trace: an iteration's work that comes out of order is one span, drawn once a stream") {
    GpuDump gpu;
    gpu.boundaries({100, 200, 300});
    gpu.launch(110, 2000, 2100);  // of step 0, after step 1's
    gpu.launch(210, 1000, 1100);
    gpu.launch(120, 3000, 3100);
    gpu.launch(220, 2500, 2600);
    const auto counts = write_chrome(gpu.load(), gpu.directory / "trace.json");
    REQUIRE(counts);
    CHECK(counts->gpu_annotations == 2);
    std::map<std::string, std::pair<double, double>> drawn;
    for (const json& event : events_of(gpu.directory / "trace.json")) {
        if (event.value("cat", "") == "gpu_user_annotation")
            drawn[event["name"]] = {event["ts"], event["dur"]};
    }
    CHECK(drawn["ProfilerStep#0"] == std::pair(1.9, 1.1));
    CHECK(drawn["ProfilerStep#1"] == std::pair(0.9, 1.6));
}

TEST_CASE("trace: waits and CUDA events have Kineto's fields, and can be left out") {
    GpuDump gpu;
    const auto event = [&](std::uint64_t at, std::uint32_t number, std::uint32_t stream) {
        gpu.told->gpu(RecordKind::kGpuEvent, "", {at, 17, pair(number, 0), pair(1, stream)}, 1);
    };
    const auto wait = [&](std::uint64_t at, std::uint32_t number, std::uint32_t of,
                          std::uint32_t stream, std::uint8_t kind) {
        gpu.told->gpu(RecordKind::kGpuSync, "", {at, at + 10, pair(number, of), pair(1, stream)},
                      kind);
    };
    gpu.kernel("k", 100, 200, 1);
    event(200, 2, 7);
    event(900, 6, 20);  // recorded anew by a later call
    wait(300, 5, 17, 8, 2);
    wait(400, 7, 17, ~0u, 1);
    wait(500, 8, 18, 8, 2);  // of an event that nobody recorded
    wait(600, 9, 0, 7, 3);
    const model::Job job = gpu.load();
    const auto counts = write_chrome(job, gpu.directory / "trace.json");
    REQUIRE(counts);
    CHECK(counts->gpu_work == 7);
    CHECK(counts->left_out == 0);
    std::map<std::int64_t, json> waits;
    for (const json& each : events_of(gpu.directory / "trace.json")) {
        if (each.value("cat", "") == "cuda_sync") waits[each["args"]["correlation"]] = each["args"];
        if (each.value("cat", "") == "cuda_event") CHECK(each["name"] == "cudaEvent");
    }
    REQUIRE(waits.size() == 4);
    CHECK(waits[5]["cuda_sync_kind"] == "Stream Wait Event");
    CHECK(waits[5]["stream"] == 8);
    CHECK(waits[5]["wait_on_stream"] == 7);
    CHECK(waits[5]["wait_on_cuda_event_record_corr_id"] == 2);
    CHECK(waits[5]["wait_on_cuda_event_id"] == 17);
    CHECK(waits[7]["stream"] == -1);
    CHECK(waits[7]["wait_on_stream"] == 20);
    CHECK(waits[7]["wait_on_cuda_event_record_corr_id"] == 6);
    CHECK(waits[8]["wait_on_stream"] == -1);
    CHECK(waits[8]["wait_on_cuda_event_record_corr_id"] == -1);
    CHECK_FALSE(waits[9].contains("wait_on_stream"));

    const auto without =
        write_chrome(job, gpu.directory / "trace.json", {.processes = {}, .cuda_sync = false});
    REQUIRE(without);
    CHECK(without->gpu_work == 1);
    CHECK(without->left_out == 6);
    for (const json& each : events_of(gpu.directory / "trace.json")) {
        CHECK_FALSE(each.value("cat", "").starts_with("cuda_"));
        if (each["ph"] == "M") CHECK(each["args"].value("name", "") != "waits");
    }
}

TEST_CASE("trace: what an export takes is not its records'") {
    // What is in use while it writes, as seen now and then.
    const auto taken = [](int steps, auto write) {
        TemporaryDirectory directory;
        write_gpu_job(directory.path(), 1, steps);
        const model::Job job = loaded(directory.path());
        const auto used = [] {
            const struct mallinfo2 now = mallinfo2();
            return static_cast<std::int64_t>(now.uordblks + now.hblkhd);
        };
        const std::int64_t before = used();
        std::int64_t most = 0;
        const auto seen = [&](const char*, std::uint64_t, std::uint64_t) {
            most = std::max(most, used() - before);
        };
        REQUIRE(write(job, directory / "trace", TraceOptions{.tell = seen}));
        return most;
    };
    constexpr int kFew = 6000;
    constexpr int kMany = 18000;
    for (const auto write : {&write_chrome, &write_perfetto}) {
        const std::int64_t few = taken(kFew, write);
        const std::int64_t many = taken(kMany, write);
        INFO(few << " bytes, then " << many);
        CHECK(many - few < 24 * (kMany - kFew));  // a step is 17 slices
    }
}
