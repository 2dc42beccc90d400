#include "inject/sources/torch/range_access.hpp"

namespace ringside::inject::torch {

constinit RangeAccess g_range{};

}  // namespace ringside::inject::torch
