#include "viewer_export/out/gpu_shape.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ringside::viewer_export::trace {

namespace {

constexpr std::uint64_t kMostThreads = 1u << 20;
constexpr std::uint32_t kMostRegisters = 1u << 20;

std::uint64_t rounded_up(std::uint64_t value, std::uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

/// Blocks that a multiprocessor can hold at once: by threads, by registers, by shared memory, by its own limit.
std::uint64_t blocks_that_fit(const model::GpuWork& kernel, const model::GpuDevice& device,
                              std::uint64_t threads) {
    constexpr std::uint64_t kRegisterUnit = 256;  // of a warp
    constexpr std::uint64_t kSchedulers = 4;      // of a multiprocessor; each has its own registers
    constexpr std::uint64_t kSharedUnit = 128;
    constexpr std::uint64_t kReservedShared = 1024;  // of a block, from 8.0 on
    constexpr std::uint32_t kReservesFrom = 8;
    const std::uint64_t warps = rounded_up(threads, device.warp_threads) / device.warp_threads;
    std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    if (device.processor_blocks > 0) most = device.processor_blocks;
    most = std::min(most, device.processor_threads / device.warp_threads / warps);
    if (kernel.registers > 0 && device.processor_registers > 0) {
        const std::uint64_t of_warp =
            rounded_up(std::uint64_t{kernel.registers} * device.warp_threads, kRegisterUnit);
        const std::uint64_t of_scheduler = device.processor_registers / kSchedulers;
        most = std::min(most, of_scheduler / of_warp * kSchedulers / warps);
    }
    std::uint64_t shared = std::uint64_t{kernel.static_shared_bytes} + kernel.dynamic_shared_bytes;
    if (device.capability_major >= kReservesFrom) shared += kReservedShared;
    shared = rounded_up(shared, kSharedUnit);
    if (shared > 0 && device.processor_shared_bytes > 0)
        most = std::min(most, device.processor_shared_bytes / shared);
    return most;
}

}  // namespace

Shape shape_of(const model::GpuWork& kernel, const model::GpuDevice& device) {
    Shape shape;
    if (device.processors == 0 || device.warp_threads == 0 || device.processor_threads == 0)
        return shape;
    const std::uint64_t threads =
        std::uint64_t{kernel.block[0]} * kernel.block[1] * kernel.block[2];
    const double blocks = static_cast<double>(kernel.grid[0]) * kernel.grid[1] * kernel.grid[2];
    if (threads == 0 || threads > kMostThreads || device.warp_threads > kMostThreads ||
        kernel.registers > kMostRegisters)
        return shape;  // no launch that ever was
    shape.blocks_per_processor = blocks / device.processors;
    shape.warps_per_processor =
        shape.blocks_per_processor * static_cast<double>(threads) / device.warp_threads;
    const double held = std::min(shape.blocks_per_processor,
                                 static_cast<double>(blocks_that_fit(kernel, device, threads)));
    const double part = held * static_cast<double>(threads) / device.processor_threads;
    shape.occupancy_percent = static_cast<std::uint32_t>(std::lround(100 * std::min(part, 1.0)));
    return shape;
}

}  // namespace ringside::viewer_export::trace
