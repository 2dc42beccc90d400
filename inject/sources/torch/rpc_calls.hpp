// The two halves of each RPC in this process, from the hooks' sightings to records.
//
//   client   send -> pipeWrite(request): begin ... pipeRead's callback (response), markFutureAsComplete or markFutureWithError: end
//   server   pipeRead's callback (request): begin ... RequestCallback: context on ... pipeWrite(response): end
//
// What is between lies in fixed tables: calls by (agent, message id), served requests by span id, arrived messages by address. Whoever takes
// the entry out ends the half: a call that has timed out is not ended again by its late response.
// All functions are called inside a HookScope, by the hooks in rpc.cpp.
#pragma once

#include "inject/core/emit.hpp"
#include "inject/sources/torch/carried_context.hpp"
#include "inject/sources/torch/rpc_access.hpp"

namespace ringside::inject::torch {

/// A send() that is running on this thread: pipeWrite happens inside it.
struct SendInProgress {
    void* agent = nullptr;
    const char* destination = nullptr;  ///< const WorkerInfo&
    Ticks begin{};
    std::uint64_t call = 0;  ///< key of the call in the table; 0: nothing was written
    std::uint64_t half = 0;
};

/// A request is written: the client's half begins (at `send`'s begin, if it is the one that is running).
void begin_call(ThreadLane& lane, void* agent, void* pipe, const MessageView& message,
                SendInProgress* send);

/// send() has returned: from now on the call is known by its Future too, which errors name. Ends it if its error came before.
void call_returned(ThreadLane& lane, const SendInProgress& send, std::uint64_t future);

/// A response is here.
/// @return whom the call was made for; not serving where the call is unknown (ended before, or made before the capture)
CarriedContext end_call(ThreadLane& lane, void* agent, const MessageView& message);

/// The call of `future` has failed: time ran out, or the connection broke.
/// @param text  torch's error text
/// @return as end_call()
CarriedContext fail_call(ThreadLane& lane, std::uint64_t future, std::string_view text);

/// A request has arrived: the server's half begins.
void begin_serving(ThreadLane& lane, void* agent, std::string_view peer, void* message,
                   const MessageView& view);

/// The request is about to be run on this thread: its context begins.
void enter_request(ThreadLane& lane, void* message);

/// A response is written: the server's half ends.
void end_serving(ThreadLane& lane, void* agent, void* pipe, const MessageView& message);

/// The response to request `id` has been dealt with. Where none was written, as the agent is shutting down, the half ends here.
void give_up_serving(ThreadLane& lane, void* agent, void* pipe, std::uint64_t id);

/// Forgets all calls and requests: a capture has ended.
void forget_calls();

}  // namespace ringside::inject::torch
