// NCCL's library: found when it is mapped, and hooked for good. The shim's list of object watchers names it.
#pragma once

namespace ringside::inject::nccl {

/// An ObjectsChanged (core/source.hpp).
void patch_loaded_objects();

}  // namespace ringside::inject::nccl
