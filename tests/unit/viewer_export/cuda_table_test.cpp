// The table where a GPU worked: torch's columns to the character, whose time a piece of work is, and that no sum is more than a device was busy.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "gpu_dump.hpp"
#include "schema/control_page.hpp"
#include "viewer_export/model/cuda_time.hpp"
#include "viewer_export/out/table.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export;
namespace fbs = ringside::fbs;
namespace schema = ringside::schema;
using schema::RecordKind;
using schema::RpcMode;

namespace {

struct OneProcess : GpuDump {
    using GpuDump::GpuDump;
    std::vector<TableRow> rows(const TableOptions& options = {}) {
        const auto found = table_rows(load(), options);
        REQUIRE(found);
        return *found;
    }
};

const TableRow& row_of(const std::vector<TableRow>& rows, const std::string& name,
                       bool on_device = false) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const TableRow& r) {
        return r.name == name && r.on_device == on_device;
    });
    REQUIRE_MESSAGE(row != rows.end(), name);
    return *row;
}

// Checked against torch 2.15's own _build_table on the same events.
constexpr const char* kGolden =
    R"(----------------------------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  
                              Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg     Self CUDA   Self CUDA %    CUDA total  CUDA time avg       CPU Mem  Self CPU Mem      CUDA Mem  Self CUDA Mem    # of Calls  
----------------------------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  
                      aten::linear        47.95%       3.500us        68.49%       5.000us       5.000us       0.000us         0.00%      12.345us      12.345us         100 B         100 B       2.00 MB       2.00 MB             1  
                       aten::addmm         9.59%       0.700us        17.81%       1.300us       0.650us      24.345us        96.05%      24.345us      12.172us           0 B           0 B           0 B           0 B             2  
                  cudaLaunchKernel         4.11%       0.300us         8.22%       0.600us       0.300us       0.000us         0.00%       0.000us       0.000us           0 B           0 B           0 B           0 B             2  
                    cuLaunchKernel         4.11%       0.300us         4.11%       0.300us       0.300us       0.000us         0.00%       0.000us       0.000us           0 B           0 B           0 B           0 B             1  
                        cudaMalloc         6.85%       0.500us         6.85%       0.500us       0.500us       0.000us         0.00%       0.000us       0.000us           0 B           0 B           0 B           0 B             1  
                       aten::copy_        13.70%       1.000us        27.40%       2.000us       2.000us       1.000us         3.95%       1.000us       1.000us           0 B           0 B           0 B           0 B             1  
                   cudaMemcpyAsync        13.70%       1.000us        13.70%       1.000us       1.000us       0.000us         0.00%       0.000us       0.000us           0 B           0 B           0 B           0 B             1  
                sgemm(float*, int)         0.00%       0.000us         0.00%       0.000us       0.000us      24.345us        96.05%      24.345us      12.172us           0 B           0 B           0 B           0 B             2  
    Memcpy HtoD (Pinned -> Device)         0.00%       0.000us         0.00%       0.000us       0.000us       1.000us         3.95%       1.000us       1.000us           0 B           0 B           0 B           0 B             1  
                          [memory]         0.00%       0.000us         0.00%       0.000us       0.000us       0.000us         0.00%       0.000us       0.000us           0 B           0 B      -2.00 MB      -2.00 MB             1  
----------------------------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------  
Self CPU time total: 7.300us
Self CUDA time total: 25.345us
)";

/// linear [ addmm [ cudaLaunchKernel [ cuLaunchKernel ] ], cudaMalloc ] and a copy: the kernel of the inner one, and 2 MiB that the outer one took.
void write_golden(OneProcess& job) {
    job.call("cuLaunchKernel", 2'300, 2'600, 1);
    job.call("cudaLaunchKernel", 2'200, 2'700, 1);
    job.thread->op("aten::addmm", 2'000, 3'000, -1, 1);
    job.call("cudaMalloc", 4'000, 4'500, 2);
    job.thread->memory(5'000, 0x10, 2 * 1024 * 1024, true);
    job.thread->memory(5'100, 0x20, 100);
    job.thread->op("aten::linear", 1'000, 6'000, -1, 1);
    job.call("cudaMemcpyAsync", 7'000, 8'000, 3);
    job.thread->op("aten::copy_", 6'500, 8'500, -1, 1);
    job.call("cudaLaunchKernel", 9'000, 9'100, 4);
    job.thread->op("aten::addmm", 8'900, 9'200, -1, 1);
    job.kernel("_Z5sgemmPfi", 10'000, 22'345, 1);
    job.told->gpu(RecordKind::kGpuCopy, "",
                  {30'000, 31'000, pair(3, 0), pair(1, 7), 4096, 2 | 3 << 8 | 1 << 16}, 1);
    job.kernel("_Z5sgemmPfi", 40'000, 52'000, 4);
    job.thread->memory(60'000, 0x10, -2 * 1024 * 1024, true);
}

}  // namespace

TEST_CASE("cuda table: columns, rows and sums are as torch prints them") {
    OneProcess job(schema::capture_options(false, true));
    write_golden(job);
    const auto text = render_table(job.load(), {});
    REQUIRE(text);
    CHECK(text->substr(0, text->find("RPCs:")) == kGolden);
}

TEST_CASE("cuda table: rows sort by CUDA time and memory by both of torch's names; JSON has them") {
    OneProcess maker(schema::capture_options(false, true));
    write_golden(maker);
    const model::Job job = maker.load();
    const auto first = [&](const std::string& key) {
        const auto rows = table_rows(job, {.sort_by = key});
        REQUIRE(rows);
        return rows->front().name;
    };
    CHECK(first("cuda_time_total") == "aten::addmm");
    CHECK(first("device_time_total") == "aten::addmm");
    CHECK(first("self_cuda_time_total") == "aten::addmm");
    CHECK(first("self_device_time_total") == "aten::addmm");
    CHECK(first("cuda_time") == "aten::linear");
    CHECK(first("cuda_memory_usage") == "aten::linear");
    CHECK(first("self_device_memory_usage") == "aten::linear");
    CHECK_FALSE(table_rows(job, {.sort_by = "device"}));
    const auto text = table_json(job, {.sort_by = "self_cuda_time_total"});
    REQUIRE(text);
    const auto json = nlohmann::json::parse(*text);
    CHECK(json["self_cuda_time_total_us"] == doctest::Approx(25.345));
    const auto& row = json["rows"][1];
    CHECK(row["name"] == "sgemm(float*, int)");
    CHECK(row["device_type"] == "cuda");
    CHECK(row["self_cuda_time_total_us"] == doctest::Approx(24.345));
    CHECK(row["cuda_time_total_us"] == doctest::Approx(24.345));
    CHECK(row["cuda_time_us"] == doctest::Approx(24.345 / 2));
    CHECK(row["count"] == 2);
    const auto linear = std::find_if(json["rows"].begin(), json["rows"].end(),
                                     [](const auto& r) { return r["name"] == "aten::linear"; });
    CHECK((*linear)["device_type"] == "cpu");
    CHECK((*linear)["cuda_memory_usage"] == 2 * 1024 * 1024);
    CHECK((*linear)["self_cuda_memory_usage"] == 2 * 1024 * 1024);
    CHECK((*linear)["cpu_memory_usage"] == 100);
}

TEST_CASE("cuda table: a column is there only for what a device did") {
    OneProcess job(schema::capture_options(false, true));
    job.thread->op("aten::add", 1'000, 2'000, -1, 1);
    job.thread->memory(1'500, 0x10, -512, true);
    job.call("cudaGetDeviceCount", 1'100, 1'200, 1);
    const model::Job loaded = job.load();
    const auto text = render_table(loaded, {});
    REQUIRE(text);
    CHECK(text->find("CUDA") == std::string::npos);
    const auto json = table_json(loaded, {});
    REQUIRE(json);
    CHECK(json->find("cuda_") == std::string::npos);
    CHECK(json->find("device_type") == std::string::npos);
}

TEST_CASE(
    "cuda table: of a moment each piece of work has its part, so that sums are what the device was "
    "busy") {
    OneProcess job;
    job.kernel("gemm", 10'000, 10'100, 0, 7);
    job.kernel("nccl", 10'060, 10'160, 0, 20);
    job.kernel("other", 10'060, 10'160, 0, 7, 1);
    job.kernel("gemm", 20'000, 20'100, 0, 7);
    const auto rows = job.rows();
    CHECK(row_of(rows, "gemm", true).self_cuda_ns == 60 + 20 + 100);
    CHECK(row_of(rows, "gemm", true).cuda_ns == 200);
    CHECK(row_of(rows, "nccl", true).self_cuda_ns == 20 + 60);
    CHECK(row_of(rows, "nccl", true).cuda_ns == 100);
    CHECK(row_of(rows, "other", true).self_cuda_ns == 100);
    CHECK(table_sums(rows).self_cuda_ns == 160 + 100 + 100);
}

TEST_CASE(
    "cuda table: whatever overlaps, shares sum to the time that their device was busy, and never "
    "to more") {
    std::mt19937 random(4711);
    for (int round = 0; round < 50; ++round) {
        OneProcess maker;
        const auto number = [&](std::uint32_t below) {
            return static_cast<std::uint32_t>(random() % below);
        };
        for (int i = 0; i < 60; ++i) {
            const std::uint64_t begin = 10'000 + number(500);
            maker.kernel("k", begin, begin + number(90), 0, number(9), number(3));
        }
        const model::Job job = maker.load();
        const model::CudaTimes times(job);
        std::map<std::uint32_t, std::int64_t> sums;
        for (std::uint32_t device = 0; device < 3; ++device) {
            std::map<std::int64_t, int> under_way;  // by nanosecond
            std::vector<double> parts(job.gpu_work.size(), 0);
            const auto each_ns = [&](auto&& what) {
                for (std::size_t i = 0; i < job.gpu_work.size(); ++i) {
                    const model::GpuWork& work = job.gpu_work[i];
                    if (work.device != device) continue;
                    for (auto ns = work.begin_ns; ns < work.end_ns; ++ns) what(i, ns);
                }
            };
            each_ns([&](std::size_t, std::int64_t ns) { ++under_way[ns]; });
            each_ns([&](std::size_t i, std::int64_t ns) { parts[i] += 1.0 / under_way[ns]; });
            std::int64_t sum = 0;
            std::int64_t pieces = 0;
            for (model::Index i = 0; i < job.gpu_work.size(); ++i) {
                if (job.gpu_work[i].device != device) continue;
                const model::CudaTime& time = times.of_work(i);
                CHECK(time.total_ns == job.gpu_work[i].duration_ns());
                CHECK(static_cast<double>(time.self_ns) <= parts[i] + 1e-6);
                CHECK(static_cast<double>(time.self_ns) > parts[i] - 1.001);
                sum += time.self_ns;
                ++pieces;
            }
            const auto busy = static_cast<std::int64_t>(under_way.size());
            CHECK(sum <= busy);
            CHECK(sum > busy - pieces);
        }
    }
}

TEST_CASE("cuda table: two processes' devices are two, whatever their numbers") {
    OneProcess job;
    job.dump.process(1, 101);
    job.kernel("k", 10'000, 10'100, 0);
    kernel(job.dump.lane(1, 0, 9), "k", 10'000, 10'100, 0);
    CHECK(table_sums(job.rows()).self_cuda_ns == 200);
}

TEST_CASE(
    "cuda table: work belongs to the innermost range around its call, in totals to all around it; "
    "a wrapper's second entry is the wrapper") {
    OneProcess job;
    job.call("cudaLaunchKernel", 3'000, 3'100, 1);
    job.thread->op("aten::mm", 2'500, 3'500, -1, 1);
    job.thread->op("aten::mm", 2'000, 4'000, -1, 1);
    job.call("cudaMemsetAsync", 5'000, 5'100, 2);
    job.thread->range("step", 1'000, 6'000, static_cast<int>(schema::TorchScope::kUser));
    job.kernel("k", 10'000, 10'100, 1);
    job.told->gpu(RecordKind::kGpuMemset, "", {10'200, 10'250, pair(2, 0), pair(1, 7), 64}, 3);
    job.kernel("k", 10'300, 10'310, 9);  // its call is in no dump
    const auto rows = job.rows();
    CHECK(row_of(rows, "aten::mm").count == 1);
    CHECK(row_of(rows, "aten::mm").self_cuda_ns == 100);
    CHECK(row_of(rows, "aten::mm").cuda_ns == 100);
    CHECK(row_of(rows, "aten::mm").self_cpu_ns == 2'000 - 100);
    CHECK(row_of(rows, "step").self_cuda_ns == 50);
    CHECK(row_of(rows, "step").cuda_ns == 150);
    CHECK(row_of(rows, "step").self_cpu_ns == 5'000 - 2'000 - 100);
    CHECK(row_of(rows, "cudaLaunchKernel").cuda_ns == 0);
    CHECK(row_of(rows, "cudaLaunchKernel").self_cpu_ns == 100);
    CHECK(row_of(rows, "k", true).count == 2);
    CHECK(row_of(rows, "k", true).self_cuda_ns == 110);
    CHECK(row_of(rows, "k", true).cpu_ns == 0);
    CHECK(row_of(rows, "Memset (Device)", true).self_cuda_ns == 50);
}

TEST_CASE(
    "cuda table: waits, events and overhead have no device time; a range that never ended launches "
    "nothing for itself") {
    OneProcess job;
    job.told->gpu(RecordKind::kGpuSync, "", {50, 60, pair(3, 17), pair(4, 5)}, 1);
    job.told->gpu(RecordKind::kGpuOverhead, "", {70, 80, pair(4, 5 << 16), pair(2, 100), 7});
    job.told->gpu(RecordKind::kGpuEvent, "", {90, 17, pair(5, 1), pair(6, 7)}, 1);
    job.call("cudaLaunchKernel", 3'000, 3'100, 1);
    job.kernel("k", 10'000, 10'100, 1);
    job.thread->open("hangs", 1'000);
    job.call("cudaStreamSynchronize", 5'000, 5'500, 3);
    job.thread->op("aten::item", 4'900, 5'600, -1, 1);
    const auto rows = job.rows();
    CHECK(rows.size() == 5);
    CHECK(row_of(rows, "aten::item").cuda_ns == 0);
    CHECK(row_of(rows, "hangs [open]").cuda_ns == 0);
    CHECK(table_sums(rows).self_cuda_ns == 100);
}

TEST_CASE(
    "cuda table: calls of a thread that recorded nothing else are rows; a kernel and a range of "
    "one name are two") {
    OneProcess job;
    job.call("cuLaunchKernel", 2'200, 2'300, 1, 99);
    job.call("cudaLaunchKernel", 2'000, 2'500, 1, 99);
    job.kernel("same", 10'000, 10'100, 1);
    job.thread->range("same", 1'000, 1'500);
    const auto rows = job.rows();
    CHECK(rows.size() == 4);
    CHECK(row_of(rows, "cudaLaunchKernel").self_cpu_ns == 400);
    CHECK(row_of(rows, "cuLaunchKernel").self_cpu_ns == 100);
    CHECK(row_of(rows, "same").cpu_ns == 500);
    CHECK(row_of(rows, "same").cuda_ns == 0);
    CHECK(row_of(rows, "same", true).cuda_ns == 100);
}

TEST_CASE(
    "cuda table: what ran on other nodes' devices stands under the request that it was for, and in "
    "the totals of the calls that led there") {
    TemporaryDirectory directory;
    const auto launch = [](LaneMaker& thread, LaneMaker& told, std::uint64_t at,
                           std::uint64_t busy) {
        const auto correlation = static_cast<std::uint32_t>(at);
        call(told, "cudaLaunchKernel", at + 10, at + 20, correlation);
        thread.op("aten::mm", at, at + 100, -1, 1);
        kernel(told, "k", at + 5'000, at + 5'000 + busy, correlation);
    };
    const auto half = [](bool server, std::uint64_t key, std::uint64_t span, std::uint64_t parent,
                         const std::string& self, const std::string& peer, int id) {
        return HalfSpec{server,
                        key,
                        span,
                        parent,
                        span == 77 ? "outer" : "inner",
                        "m",
                        self,
                        peer,
                        server ? RpcMode::kUnknown : RpcMode::kSync,
                        span,
                        id};
    };
    std::uint64_t clients[2];
    std::uint64_t servers[2];
    {
        DumpMaker dump("alpha");
        dump.process(0, 100, 0, "worker0", 0);
        LaneMaker& lane = dump.lane(0, 0, kThread);
        clients[0] = lane.rpc_begin(1'000, half(false, 1, 77, 0, "worker0", "worker1", 0));
        lane.rpc_end(9'000, 1);
        dump.footer(30'000);
        dump.write(directory / "alpha.rsd");
    }
    {
        DumpMaker dump("beta");
        dump.process(0, 100, 1, "worker1", 1);
        LaneMaker& lane = dump.lane(0, 0, kThread);
        LaneMaker& told = dump.lane(0, 1, 8);
        servers[0] = lane.rpc_begin(2'000, half(true, 1, 77, 0, "worker1", "worker0", 1));
        lane.serve(2'010, 1);
        launch(lane, told, 2'100, 300);
        clients[1] = lane.rpc_begin(3'000, half(false, 2, 78, 1, "worker1", "worker2", 1));
        lane.rpc_end(7'000, 2);
        lane.stop_serving(8'000);
        lane.rpc_end(8'100, 1);
        launch(lane, told, 20'000, 1);  // its own
        dump.footer(30'000);
        dump.write(directory / "beta.rsd");
    }
    {
        DumpMaker dump("gamma");
        dump.process(0, 100, 2, "worker2", 2);
        LaneMaker& lane = dump.lane(0, 0, kThread);
        LaneMaker& told = dump.lane(0, 1, 8);
        servers[1] = lane.rpc_begin(4'000, half(true, 1, 78, 0, "worker2", "worker1", 2));
        lane.serve(4'010, 1);
        launch(lane, told, 4'100, 50);
        lane.stop_serving(6'000);
        lane.rpc_end(6'100, 1);
        dump.footer(30'000);
        dump.write(directory / "gamma.rsd");
    }
    IndexMaker index({"alpha", "beta", "gamma"});
    index.joined({1, 0, 0, 0, clients[1]}, {2, 0, 0, 0, servers[1]}, 1);
    index.joined({0, 0, 0, 0, clients[0]}, {1, 0, 0, 0, servers[0]});
    index.write(directory / "job.rsj");
    const auto found = table_rows(loaded(directory.path()), {});
    REQUIRE(found);
    const std::string outer = "rpc_sync#outer(worker0 -> worker1)";
    const std::string inner = outer + "#remote_op: rpc_sync#inner(worker1 -> worker2)";
    CHECK(row_of(*found, outer).cuda_ns == 350);
    CHECK(row_of(*found, outer).self_cuda_ns == 0);
    CHECK(row_of(*found, inner).cuda_ns == 50);
    CHECK(row_of(*found, outer + "#remote_op: aten::mm").self_cuda_ns == 300);
    CHECK(row_of(*found, outer + "#remote_op: cudaLaunchKernel").node_id == 1);
    CHECK(row_of(*found, outer + "#remote_op: k", true).self_cuda_ns == 300);
    CHECK(row_of(*found, outer + "#remote_op: k", true).node_id == 1);
    CHECK(row_of(*found, inner + "#remote_op: aten::mm").self_cuda_ns == 50);
    CHECK(row_of(*found, inner + "#remote_op: k", true).node_id == 2);
    CHECK(row_of(*found, "aten::mm").cuda_ns == 1);
    CHECK(row_of(*found, "k", true).cuda_ns == 1);
    CHECK(table_sums(*found).self_cuda_ns == 351);
}
