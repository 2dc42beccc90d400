// Requests whose completion says something: receives, persistent ones, collectives that do not block; and messages that MPI_Mprobe has taken out of the
// queue. By their handle. Of an ordinary send nothing is remembered: several may have one handle.
#pragma once

#include "inject/sources/mpi/messages.hpp"

namespace ringside::inject::mpi {

enum class RequestKind : std::uint8_t {
    kReceive,
    kSend,  ///< persistent
    kCollective,
    kNewCommunicator,  ///< a collective that makes one
    kMatched,          ///< no request: a message of Mprobe
};

struct Request {
    RequestKind kind = RequestKind::kReceive;
    bool persistent = false;
    bool idle = false;  ///< persistent, and not started
    bool cancelling =
        false;  ///< MPI_Cancel was called: only its status says whether it took a message
    std::uint16_t function = 0;  ///< that made it
    Communicator* comm = nullptr;
    // Of persistent ones, as the program gave them.
    std::int32_t rank = 0, tag = 0;
    std::uint64_t bytes = 0;  ///< of a send
    // Of an active one.
    Receipt receipt;
    std::uint64_t sequence = 0;  ///< of a collective
    std::uint64_t key = 0;       ///< of its async range; 0: not recorded
    std::uint32_t word = 0;      ///< the capture word that it was recorded under
    Word new_comm = 0;           ///< its handle
    std::uint64_t made = 0;      ///< its number
};

/// Remembers a request that was made. Whatever had this handle is no more.
void keep_request(Word handle, const Request& request);
/// @return false: nothing is known of it
bool look_at_request(Word handle, Request* out);
/// As look_at_request(); it is forgotten. Its communicator's hold is the caller's: let_go(out->comm) when it is done, or nothing may be left of that.
bool take_request(Word handle, Request* out);

/// Starts a persistent request: what it does now is posted.
/// @return its send, if it is one
/// @param bytes  of that send
Sent start_request(ThreadLane* lane, Word handle, std::uint64_t* bytes);

/// A request has completed. What it was is recorded, and it is forgotten, or inactive.
/// @param lane    null: nothing is recorded
/// @param status  null: not known
void complete_request(ThreadLane* lane, Word handle, const std::byte* status, bool ok, Ticks ticks);
/// Before complete_request(), outside of a scope: a communicator that it has made is learned. Asks the library.
void learn_made(Word handle);

/// A request will never be seen to complete.
void forget_request(Word handle);
/// MPI_Cancel is called for a request.
void cancel_request(Word handle);

/// A collective that does not block begins.
void begin_async(ThreadLane& lane, Request& request, std::uint32_t word);

/// The collective `sequence` of this communicator begins: its state says so.
std::uint64_t next_collective(Communicator& comm);

}  // namespace ringside::inject::mpi
