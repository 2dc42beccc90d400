// What the shim knows of MPI's layouts and constants (inject/sources/mpi/abi.hpp), against the mpi.h of one library: by compiling, and by its status.
#include <mpi.h>

#include <cstddef>
#include <type_traits>

#include "inject/sources/mpi/abi.hpp"

#ifdef OPEN_MPI
constexpr ringside::inject::mpi::Abi kOurs = ringside::inject::mpi::kOpenMpi;
static_assert(offsetof(MPI_Status, _cancelled) == kOurs.cancelled_at);
static_assert(offsetof(MPI_Status, _ucount) == 16 && sizeof(MPI_Status::_ucount) == 8);
#else
constexpr ringside::inject::mpi::Abi kOurs = ringside::inject::mpi::kMpich;
static_assert(offsetof(MPI_Status, count_hi_and_cancelled) == kOurs.cancelled_at);
static_assert(offsetof(MPI_Status, count_lo) == 0 && kOurs.cancelled_mask == 1);
static_assert(static_cast<unsigned>(MPI_COMM_WORLD) == kOurs.comm_world);
static_assert(static_cast<unsigned>(MPI_COMM_SELF) == kOurs.comm_self);
static_assert(static_cast<unsigned>(MPI_COMM_NULL) == kOurs.comm_null);
static_assert(static_cast<unsigned>(MPI_REQUEST_NULL) == kOurs.request_null);
static_assert(static_cast<unsigned>(MPI_MESSAGE_NULL) == kOurs.request_null);
// Types of the library's own bear their size in the second byte.
static_assert((static_cast<unsigned>(MPI_INT) & 0xfc00ff00) == 0x4c000400);
static_assert((static_cast<unsigned>(MPI_DOUBLE) & 0xfc00ff00) == 0x4c000800);
#endif
static_assert(sizeof(MPI_Comm) == kOurs.handle_bytes && sizeof(MPI_Request) == kOurs.handle_bytes &&
              sizeof(MPI_Group) == kOurs.handle_bytes &&
              sizeof(MPI_Datatype) == kOurs.handle_bytes &&
              sizeof(MPI_Message) == kOurs.handle_bytes);
static_assert(MPI_ANY_SOURCE == kOurs.any_source && MPI_PROC_NULL == kOurs.proc_null &&
              MPI_ANY_TAG == kOurs.any_tag);
static_assert(sizeof(MPI_Status) == kOurs.status_bytes &&
              sizeof(MPI_Status) <= ringside::inject::mpi::kMostStatusBytes);
static_assert(offsetof(MPI_Status, MPI_SOURCE) == kOurs.source_at &&
              offsetof(MPI_Status, MPI_TAG) == kOurs.tag_at);

int main() {
    return reinterpret_cast<std::size_t>(MPI_STATUS_IGNORE) == kOurs.ignore &&
                   reinterpret_cast<std::size_t>(MPI_STATUSES_IGNORE) == kOurs.ignore
               ? 0
               : 1;
}
