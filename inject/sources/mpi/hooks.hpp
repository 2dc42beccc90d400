// The wrappers that stand in the slots of MPI's callers. Called by mpi_source; the wrappers by programs.
#pragma once

#include "inject/core/slots/slots.hpp"

namespace ringside::inject::mpi {

/// Everybody who calls MPI_*, but for the libraries that MPI consists of.
SlotSet& program_slots();
/// The Fortran bindings, as far as they call PMPI_*: a Fortran program's calls. Both are filled at the first call, under the loader's lock.
SlotSet& fortran_slots();

}  // namespace ringside::inject::mpi
