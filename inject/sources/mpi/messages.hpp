// Messages: the numbers of sends and receives when they are posted, and the two halves when they are done.
#pragma once

#include "inject/core/emit.hpp"
#include "inject/sources/mpi/communicators.hpp"

namespace ringside::inject::mpi {

/// A message that is being sent. number 0: none (nobody's, or no place to count it).
struct Sent {
    Communicator* comm = nullptr;
    std::uint64_t hash = 0, number = 0;
    std::int32_t peer = schema::kNoPeer, tag = 0;
    std::uint16_t function = 0;
};

/// A send is posted: it is numbered.
/// @param rank  as the program gives it
Sent post_send(Communicator* comm, std::int32_t rank, std::int32_t tag, std::uint16_t function);

/// A posted receive, until it completes. comm null: none.
struct Receipt {
    Communicator* comm = nullptr;
    std::uint64_t number = 0;
    Posted* posted = nullptr;        ///< it could not be numbered when it was posted
    std::int32_t peer = 0, tag = 0;  ///< as posted; kAny
    std::uint16_t function = 0;

    bool any() const { return comm != nullptr && (peer == kAny || tag == kAny); }
};

Receipt post_receive(Communicator* comm, std::int32_t rank, std::int32_t tag,
                     std::uint16_t function);

/// A receive has completed, or failed, or was cancelled. Records its half, and those that waited for it.
/// @param lane    null: nothing is recorded
/// @param status  null: it is not known; not where receipt.any()
void complete_receive(ThreadLane* lane, const Receipt& receipt, const std::byte* status, bool ok,
                      Ticks ticks);

/// The client's half of a message.
/// @param end  0: now
void record_sent(ThreadLane& lane, const Sent& sent, Ticks begin, Ticks end, std::uint64_t bytes,
                 bool ok);

/// The name of a function, as it is recorded.
NameId function_name(ThreadLane& lane, std::uint16_t function);
/// The name of a collective on this communicator.
NameId collective_name(ThreadLane& lane, std::uint16_t function, Communicator& comm);

}  // namespace ringside::inject::mpi
