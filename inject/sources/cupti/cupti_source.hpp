// CUDA's side of the shim: it is there once the driver has called us, and records through a plugin that is loaded when a capture wants it.
#pragma once

#include "inject/core/source.hpp"

namespace ringside::inject {

extern const Source kCuptiSource;

}  // namespace ringside::inject
