// What the command says of GPUs: iterations, and ranges as the GPU ran them.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "gpu_job.hpp"
#include "sample_job.hpp"
#include "schema/gpu_record.hpp"
#include "viewer_export/out/ranges_view.hpp"
#include "viewer_export/out/steps_view.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export;
using nlohmann::json;
using ringside::schema::RecordKind;

namespace {

struct GpuViews {
    explicit GpuViews(int ranks = 2) {
        write_gpu_job(directory.path(), ranks);
        job = loaded(directory.path());
    }
    TemporaryDirectory directory;
    model::Job job;
};

/// Words of the line that begins with these words; empty: no line does.
std::vector<std::string> line_of(const std::string& text, const std::vector<std::string>& begin) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::vector<std::string> found;
        for (std::string word; words >> word;) found.push_back(word);
        if (found.size() >= begin.size() && std::equal(begin.begin(), begin.end(), found.begin()))
            return found;
    }
    return {};
}

using Line = std::vector<std::string>;

}  // namespace

TEST_CASE("steps: an iteration's row has milliseconds and percents that add up to it") {
    const GpuViews gpu;
    const std::string text = render_steps(gpu.job, {});
    CHECK(line_of(text, {"1", "node1", "4001", "1", "2"}) ==
          Line{"1", "node1", "4001", "1", "2", "0.250", "0.100", "40.00", "0.060", "24.00", "0.040",
               "16.00", "0.010", "4.00", "0.100", "40.00", "33.33"});
    CHECK(line_of(text, {"0", "node0", "4000", "0", "all", "3"}) ==
          Line{"0", "node0", "4000", "0", "all", "3", "0.750", "0.300", "40.00", "0.180", "24.00",
               "0.120", "16.00", "0.030", "4.00", "0.300", "40.00", "33.33"});
    CHECK(line_of(text, {"0", "node0", "4000", "0", "trace"}) ==
          Line{"0", "node0", "4000", "0", "trace", "0.660", "0.300", "45.45", "0.180", "27.27",
               "0.120", "18.18", "0.030", "4.55", "0.210", "31.82", "33.33"});
    CHECK(text.find("Outside of iterations") == std::string::npos);
}

TEST_CASE("steps: the slowest iteration is named, and the rank that the others wait for") {
    TemporaryDirectory directory;
    for (std::uint64_t rank = 0; rank < 2; ++rank) {
        DumpMaker dump("node" + std::to_string(rank));
        dump.process(0, 4000 + static_cast<int>(rank), static_cast<int>(rank));
        LaneMaker& lane = dump.lane(0, 0, 100);
        // Three iterations of 100, the second 200: rank 0 computes 80 and waits, rank 1 computes to the end.
        std::uint64_t begin = 1'000'000;
        for (std::uint64_t step = 0; step < 3; ++step) {
            const std::uint64_t length = step == 1 ? 200'000 : 100'000;
            lane.value(RecordKind::kIteration, "step", begin, step);
            const std::uint64_t computed = rank == 0 ? begin + length - 20'000 : begin + length;
            lane.gpu(RecordKind::kGpuKernel, "mm", {begin, computed, 0, 0});
            if (rank == 0)
                lane.gpu(RecordKind::kGpuKernel, "ncclDevKernel_AllReduce()",
                         {computed, begin + length, 0, 0});
            begin += length;
        }
        lane.value(RecordKind::kIteration, "step", begin, 3);
        lane.gpu(RecordKind::kGpuKernel, "late", {begin, begin + 50'000, 0, 0});
        dump.footer(10'000'000);
        dump.write(directory / ("rank" + std::to_string(rank) + ".rsd"));
    }
    const model::Job job = loaded(directory.path());
    const std::string text = render_steps(job, {.row_limit = 2});
    CHECK(text.find("Slowest iteration: 1 of rank 0 on node0 (pid 4000), 200.000us; the mean is "
                    "133.333us\n") != std::string::npos);
    CHECK(text.find("Slowest rank: rank 1 on node1 (pid 4001), 133.333us an iteration") !=
          std::string::npos);
    CHECK(text.find("others; the mean is 123.333us\n") != std::string::npos);
    CHECK(text.find("Outside of iterations: GPUs were busy for 100.000us more, 11.11%") !=
          std::string::npos);
    CHECK(text.find("4 rows of iterations are not shown") != std::string::npos);
    CHECK(line_of(text, {"1", "node1", "4001", "0", "0"}).empty());
    const json told = json::parse(steps_json(job, {.row_limit = 2}));
    CHECK(told["slowest_iteration"]["number"] == 1);
    CHECK(told["slowest_rank"]["rank"] == 1);
    CHECK(told["devices"][1]["iterations"].size() == 3);
}

TEST_CASE("steps: JSON has each device's trace, sum and iterations in microseconds") {
    const GpuViews gpu;
    const json told = json::parse(steps_json(gpu.job, {}));
    REQUIRE(told["devices"].size() == 2);
    const json& device = told["devices"][1];
    CHECK(device["rank"] == 1);
    CHECK(device["device"] == 1);
    CHECK(device["iterations_of"] == "Optimizer.step#SGD.step");
    CHECK(device["trace"]["time_us"] == 660.0);
    CHECK(device["sum"]["idle_us"] == 300.0);
    REQUIRE(device["iterations"].size() == 3);
    const json& step = device["iterations"][2];
    CHECK(step["number"] == 3);
    CHECK(step["compute_us"] == 100.0);
    CHECK(step["communication_us"] == 60.0);
    CHECK(step["exposed_communication_us"] == 40.0);
    CHECK(step["copies_us"] == 10.0);
    CHECK(std::abs(step["overlap_percent"].get<double>() - 100.0 / 3) < 1e-9);
}

TEST_CASE("steps, ranges: where there is no GPU work, they say so and why") {
    TemporaryDirectory directory;
    write_sample(directory.path(), true);
    const model::Job job = loaded(directory.path());
    CHECK(render_steps(job, {}) == "No GPU work was recorded: no process used CUDA\n");
    CHECK(*render_ranges(job, {}) == "No GPU work was recorded: no process used CUDA\n");
    CHECK(json::parse(steps_json(job, {}))["devices"].empty());
    CHECK(json::parse(*ranges_json(job, {}))["ranges"].empty());
}

TEST_CASE("ranges: a row adds up a name's spans on one stream, the greatest first") {
    const GpuViews gpu(1);
    const auto rows = ranges_rows(gpu.job, {});
    REQUIRE(rows);
    REQUIRE(rows->size() == 4);  // copy_, mm, relu on stream 7, allreduce_ on 20
    const std::string text = *render_ranges(gpu.job, {});
    CHECK(line_of(text, {"aten::mm"}) == Line{"aten::mm", "0", "node0", "4000", "0", "7", "3",
                                              "180.000us", "60.000us", "60.000us", "60.000us",
                                              "36.000us", "3", "0"});
    CHECK(line_of(text, {"aten::copy_"}).at(12) == "0");
    CHECK(line_of(text, {"aten::copy_"}).at(13) == "3");
    CHECK(line_of(text, {"c10d::allreduce_"}).at(5) == "20");
    std::vector<std::string> names;
    for (const RangesRow& row : *rows) names.push_back(gpu.job.names[row.name]);
    CHECK(names.back() == "aten::copy_");
    CHECK(names[2] == "aten::relu");
    CHECK(ranges_rows(gpu.job, {.annotations = true})->empty());
    const auto by_cpu = json::parse(*ranges_json(gpu.job, {.sort_by = "count", .row_limit = 1}));
    REQUIRE(by_cpu["ranges"].size() == 1);
    CHECK(by_cpu["ranges"][0]["gpu_time_us"].get<double>() > 0);
}

TEST_CASE("ranges: least, greatest and mean are of calls that differ") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000);
    LaneMaker& lane = dump.lane(0, 0, 100);
    const auto ran = [&](std::uint64_t at, std::uint64_t ns, std::uint64_t correlation) {
        lane.range("r", at, at + 10);
        lane.gpu(RecordKind::kGpuApi, "launch", {at + 5, at + 6, correlation, 100});
        lane.gpu(RecordKind::kGpuKernel, "k", {at + 100, at + 100 + ns, correlation, 7ull << 32});
    };
    ran(1000, 300, 1);
    ran(2000, 100, 2);
    ran(3000, 200, 3);
    dump.footer(10'000);
    dump.write(directory / "alpha.rsd");
    const auto rows = ranges_rows(loaded(directory.path()), {});
    REQUIRE(rows);
    REQUIRE(rows->size() == 1);
    const RangesRow& row = rows->front();
    CHECK(row.count == 3);
    CHECK(row.gpu_ns == 600);
    CHECK(row.min_ns == 100);
    CHECK(row.max_ns == 300);
    CHECK(row.cpu_ns == 30);
    CHECK(row.gpu_each_ns() == 200.0);
}

TEST_CASE("ranges: annotations are what a program has named, whatever record it has") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000);
    LaneMaker& lane = dump.lane(0, 0, 100);
    constexpr int kFunction = 0, kUser = 7;
    const auto ran = [&](std::uint64_t at) {
        lane.gpu(RecordKind::kGpuApi, "launch", {at + 5, at + 6, at, 100});
        lane.gpu(RecordKind::kGpuKernel, "k", {at + 100, at + 200, at, 7ull << 32});
    };
    lane.range("aten::mul", 1000, 1010, kFunction);  // without a gradient
    ran(1000);
    lane.op("mine, with shapes", 2000, 2010, -1, 1, 0, kUser, "[[4]]");
    ran(2000);
    lane.range("mine", 3000, 3010, kUser);
    ran(3000);
    lane.op("aten::add", 4000, 4010, 1, 1, 0, kFunction);
    ran(4000);
    dump.footer(10'000);
    dump.write(directory / "alpha.rsd");
    const model::Job job = loaded(directory.path());
    CHECK(ranges_rows(job, {})->size() == 4);
    std::set<std::string> names;
    const auto rows = ranges_rows(job, {.annotations = true});
    REQUIRE(rows);
    for (const RangesRow& row : *rows) names.insert(job.names[row.name]);
    CHECK(names == std::set<std::string>{"mine", "mine, with shapes"});
}

TEST_CASE("ranges: an unknown sort key is a usage error that names those there are") {
    const auto rows = ranges_rows(model::Job{}, {.sort_by = "beauty"});
    REQUIRE_FALSE(rows);
    CHECK(rows.error().code == ringside::schema::ErrorCode::kUsage);
    CHECK(rows.error().message.find("gpu_time_total") != std::string::npos);
}
