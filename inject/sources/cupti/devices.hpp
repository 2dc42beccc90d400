// What the process's devices are: asked of the driver once, told with each delivery, so that each piece of a capture has it.
#pragma once

#include "inject/sources/cupti/plugin.hpp"

namespace ringside::inject::cupti {

/// Asks the driver, the first time.
/// @thread thread-safe; neither inside the driver nor CUPTI
void read_devices(const Shim& shim);

/// Writes a GpuDevice each, once they are known.
/// @thread thread-safe
void put_devices(LaneHandle* lane, const Shim& shim, std::uint64_t ticks);

}  // namespace ringside::inject::cupti
