#include "gpu_job.hpp"

#include <string>

#include "gpu_dump.hpp"

namespace ringside::tests {

namespace {

using schema::RecordKind;

constexpr std::uint64_t kUs = 1000;
constexpr std::uint64_t kStepTicks = 250 * kUs;
constexpr std::uint32_t kBackwardThread = 101;
constexpr std::uint32_t kContext = 1;
constexpr int kStepsAChunk = 10'000;

class Rank {
public:
    Rank(int rank, int ranks)
        : dump_("node" + std::to_string(rank)), device_(static_cast<std::uint32_t>(rank)) {
        dump_.process(0, 4000 + rank, rank, "trainer" + std::to_string(rank));
        thread_ = &dump_.lane(0, 0, kThread);
        backward_ = &dump_.lane(0, 1, kBackwardThread);
        told_ = &dump_.lane(0, 2, kBackwardThread + 1);
        for (std::uint64_t device = 0; device < static_cast<std::uint64_t>(ranks); ++device) {
            told_->gpu(RecordKind::kGpuDevice, "Test GPU",
                       {1, 80ull << 30, pair(device, 132), pair(9, 0), pair(1024, 2048),
                        pair(65536, 65536), pair(49152, 233472), pair(232448, 32), pair(32, 0)});
        }
    }

    void step(int number) {
        const std::uint64_t t = 1000 * kUs + static_cast<std::uint64_t>(number) * kStepTicks;
        boundary(t, number);
        op("aten::copy_", "cudaMemcpyAsync", t + 5 * kUs);
        told_->gpu(RecordKind::kGpuCopy, "",
                   {t + 20 * kUs, t + 30 * kUs, pair(correlation_, device_), pair(kContext, 7),
                    4096, 1 | 3 << 8 | 1 << 16},
                   1);
        op("aten::mm", "cudaLaunchKernel", t + 20 * kUs, number);
        kernel("ampere_sgemm_128x64_tn", t + 40 * kUs, 60, 7);
        op("aten::relu", "cudaLaunchKernel", t + 35 * kUs);
        kernel("_ZN2at6native29vectorized_elementwise_kernelILi4EEEvi", t + 100 * kUs, 40, 7);
        op("c10d::allreduce_", "cudaLaunchKernel", t + 50 * kUs);
        kernel("_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
               t + 120 * kUs, 60, 20);
        backward_->op("MmBackward0", t + 70 * kUs, t + 90 * kUs, number, 2, 1, 1);
        call("cudaDeviceSynchronize", t + 190 * kUs, 40, ++correlation_);
        told_->gpu(RecordKind::kGpuSync, "",
                   {t + 190 * kUs, t + 230 * kUs, pair(correlation_, 0), pair(kContext, ~0u)}, 4);
        // A chunk has a most that it may hold.
        if (number % kStepsAChunk != kStepsAChunk - 1) return;
        for (LaneMaker* lane : {thread_, backward_, told_}) lane->flush();
    }

    void boundary(std::uint64_t t, int number) {
        thread_->value(RecordKind::kIteration, "Optimizer.step#SGD.step", t,
                       static_cast<std::uint64_t>(number) + 1);
    }

    void write(const std::filesystem::path& path, int steps) {
        const std::uint64_t end = 1000 * kUs + static_cast<std::uint64_t>(steps) * kStepTicks;
        boundary(end, steps);
        dump_.footer(end + 10 * kUs);
        dump_.write(path);
    }

private:
    void call(const std::string& name, std::uint64_t begin, std::uint64_t us,
              std::uint32_t correlation) {
        told_->gpu(RecordKind::kGpuApi, name,
                   {begin, begin + us * kUs, correlation, pair(kThread, 211)});
    }
    /// An operator of 12 us with the call that launches its work.
    void op(const std::string& name, const std::string& api, std::uint64_t begin,
            std::int64_t sequence = -1) {
        call(api, begin + 2 * kUs, 5, ++correlation_);
        thread_->op(name, begin, begin + 12 * kUs, sequence, 1, 0, 0,
                    sequence >= 0 ? "[[128, 64], [64, 32]]" : "");
    }
    void kernel(const std::string& name, std::uint64_t begin, std::uint64_t us,
                std::uint32_t stream) {
        told_->gpu(RecordKind::kGpuKernel, name,
                   {begin, begin + us * kUs, pair(correlation_, device_), pair(kContext, stream),
                    pair(264, 1), pair(1, 256), pair(1, 1), pair(1024, 0), pair(32, 0)});
    }

    DumpMaker dump_;
    std::uint32_t device_;
    std::uint32_t correlation_ = 0;
    LaneMaker* thread_;
    LaneMaker* backward_;
    LaneMaker* told_;
};

}  // namespace

void write_gpu_job(const std::filesystem::path& directory, int ranks, int steps) {
    for (int number = 0; number < ranks; ++number) {
        Rank rank(number, ranks);
        for (int step = 0; step < steps; ++step) rank.step(step);
        rank.write(directory / ("rank" + std::to_string(number) + ".rsd"), steps);
    }
}

}  // namespace ringside::tests
