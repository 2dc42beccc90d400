// The functions that NVTX calls in place of its own no-ops.
#pragma once

#include "inject/sources/nvtx/abi.hpp"

namespace ringside::inject::nvtx {

/// By a table's index; null where we take no part.
AnyFunction core_call(std::uint32_t index);
AnyFunction core2_call(std::uint32_t index);

}  // namespace ringside::inject::nvtx
