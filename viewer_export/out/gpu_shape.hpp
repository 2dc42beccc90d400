// How a kernel filled its device, as Kineto tells it: from the launch and the device's limits, by NVIDIA's occupancy rules.
#pragma once

#include <cstdint>

#include "viewer_export/model/gpu.hpp"

namespace ringside::viewer_export::trace {

struct Shape {
    double blocks_per_processor = 0;
    double warps_per_processor = 0;
    std::uint32_t occupancy_percent = 0;  ///< estimated
};

/// @return zeros where the device's limits are unknown
Shape shape_of(const model::GpuWork& kernel, const model::GpuDevice& device);

}  // namespace ringside::viewer_export::trace
