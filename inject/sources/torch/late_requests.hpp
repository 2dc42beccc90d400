// Requests whose arrival was not seen: the read that took them was armed before the capture began, once a connection. When they are served
// the caller is unknown; the response's pipe names it. Until then they lie here, and nothing is recorded but the context of their thread.
// Called by rpc_calls.
#pragma once

#include "inject/core/emit.hpp"

namespace ringside::inject::torch {

/// Keeps the begin of a request that this thread is about to serve.
/// @param begin  all but peer, self and span
/// @return false: no room
bool remember_late(const RpcBegin& begin);

/// Gives back the begin of the request that a response answers. Two callers may use one message id at once: told apart by what the thread
/// serves or has just served, else counted (Loss::kUnmatchedEnd) and not guessed.
/// @param serving_key  the context of the thread that writes the response
bool take_late(std::uint64_t message_id, std::uint64_t serving_key, RpcBegin* out);

/// Forgets all.
void forget_late();

}  // namespace ringside::inject::torch
