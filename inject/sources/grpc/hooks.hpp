// The wrappers that stand in the slots of gRPC's callers (libgrpc++, programs that use the C API). Called by grpc_source; the wrappers by gRPC.
#pragma once

#include "inject/core/slots/slots.hpp"

namespace ringside::inject::grpc {

/// The core, and everybody who calls it.
SlotSet& grpc_slots();

/// Whether what each kind of call needs has slots.
/// @return null, or what is missing and what that costs
const char* first_missing();

}  // namespace ringside::inject::grpc
