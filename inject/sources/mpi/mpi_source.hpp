// MPI's libraries: found when they are mapped, and hooked for good. The shim's list of object watchers names it.
#pragma once

namespace ringside::inject::mpi {

/// An ObjectsChanged (core/source.hpp).
void patch_loaded_objects();

}  // namespace ringside::inject::mpi
