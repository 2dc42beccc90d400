// The MPI library in this process: whose ABI it has, and what we call of it (PMPI_*, so that no hook and no other tool sees it).
#pragma once

#include "inject/core/slots/slots.hpp"
#include "inject/sources/mpi/abi.hpp"

namespace ringside::inject::mpi {

/// Functions of the library. Arguments are passed as words; results are error codes.
struct Library {
    int (*initialized)(int* flag);
    int (*comm_rank)(Word comm, int* rank);
    int (*comm_size)(Word comm, int* size);
    int (*comm_test_inter)(Word comm, int* flag);
    int (*comm_group)(Word comm, Word* group);
    int (*comm_remote_group)(Word comm, Word* group);
    int (*group_size)(Word group, int* size);
    int (*group_translate_ranks)(Word from, int count, const int* ranks, Word to, int* out);
    int (*group_free)(Word* group);
    int (*type_size)(Word type, int* size);
};
/// Set by look_up_library(), before any slot is written.
extern Library g_library;
extern Abi g_abi;

/// Finds out which library is mapped, and what we call of it. The first one stays: two in one process are not told apart.
/// @return null: it is known; else why nothing is hooked, for the level
/// @thread under the loader's lock
const char* look_up_library(const SlotSet& slots);

/// The bytes of one element, where asking is cheap and safe: types that the library brings, whose handles are never given to another.
/// @return 0: unknown
std::uint64_t type_bytes(Word type);

}  // namespace ringside::inject::mpi
