// Torch RPC: wrappers in the relocation slots of libtorch, while a capture runs. They sight each message on its way (send, written, arrived,
// served, answered) and hand it to rpc_calls; the wire and the calls themselves are unchanged.
// Called by torch_source; the wrappers by torch.
#pragma once

#include "inject/core/slots/slots.hpp"

namespace ringside::inject::torch {

/// How much of RPC can be recorded.
struct RpcAbility {
    bool present = false;  ///< the libraries have a TensorPipe agent
    bool calls = false;    ///< halves at all
    const char* missing =
        nullptr;  ///< the first thing that is missing, with what it costs; null: all hooks have slots
};

/// The libraries that torch's symbols are in, and those whose slots are written.
SlotSet& torch_slots();

/// Finds slots and accessors, also in objects that were loaded since.
/// @thread one at a time
RpcAbility prepare_rpc();

/// Writes the wrappers into the slots.
void attach_rpc();

/// Writes the originals back and forgets what is in flight. Wrapped callbacks that are waiting stay and pass through.
void detach_rpc();

}  // namespace ringside::inject::torch
