// A training job on GPUs with numbers that are easy to add up, a dump a rank. Each step takes 250 us, of which the GPU is idle 70:
//
//   thread   copy_   mm        relu      allreduce_                    backward's thread: MmBackward0
//   stream 7    [copy 10us][ mm 60us ][ relu 40us ]
//   stream 20                            [ nccl 60us, 20us of it beside relu ]
#pragma once

#include <cstdint>
#include <filesystem>

namespace ringside::tests {

inline constexpr std::uint32_t kGpuJobStreams[] = {7, 20};
inline constexpr int kGpuJobSteps = 3;

/// Writes rank0.rsd ... of `ranks` processes, each on a node and a device of its own.
void write_gpu_job(const std::filesystem::path& directory, int ranks, int steps = kGpuJobSteps);

}  // namespace ringside::tests
