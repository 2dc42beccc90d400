// The communicators that this process is in: ids that all members derive alike without a message, and how many collectives each has begun. Kept from
// their making on, captured or not, so that ids and numbers are right in a capture that begins late.
#pragma once

#include <atomic>
#include <cstdint>

#include "inject/core/fixed_text.hpp"
#include "inject/core/open_calls.hpp"
#include "inject/sources/nccl/functions.hpp"

namespace ringside::inject::nccl {

/// What we call of the library.
struct Library {
    int (*comm_count)(Word comm, int* size);
    int (*comm_user_rank)(Word comm, int* rank);
};
/// Set before any slot is written.
extern Library g_library;

struct Communicator {
    std::uint64_t id = 0;    ///< of its GroupState
    std::uint32_t size = 0;  ///< 0: the library is asked once it is made
    std::int32_t rank = 0;   ///< -1: not known
    FixedText<32> label;
    std::atomic<std::uint64_t> collectives{0}, splits{0}, shrinks{0};
    std::atomic<schema::GroupState*> state{nullptr};
    // While it is being made: where the library puts its handle, and the next one that this thread's group makes.
    const Word* handle = nullptr;
    Communicator* next = nullptr;
};

/// A communicator that is about to be made.
/// @param size  0: not known yet
/// @return null: there is no place, which was counted
/// @thread thread-safe
Communicator* make_communicator(std::uint64_t id, std::uint32_t size, std::int32_t rank);
/// It has been made: calls find it by the handle that lies at `comm->handle`; where there is none it is given back.
void keep_communicator(Communicator* comm);
/// It has not been made. Null is fine.
void drop_communicator(Communicator* comm);
/// The communicator of a handle.
/// @return null: not known (made before us, beyond the table)
Communicator* find_communicator(Word handle);
/// Its handle is no more.
void forget_communicator(Word handle);

/// The number of the collective that begins now, from 1.
std::uint64_t next_collective(Communicator& comm);

/// Of two that are hashes already.
std::uint64_t mix(std::uint64_t a, std::uint64_t b);

}  // namespace ringside::inject::nccl
