// gRPC's C core in this process: whether it is there, of a version that we know, and what we call of it.
#pragma once

#include "inject/core/slots/slots.hpp"
#include "inject/sources/grpc/abi.hpp"

namespace ringside::inject::grpc {

/// What is called of the core, beside the originals of the hooks.
struct Library {
    char* (*peer_of)(Call*);
    void (*free_text)(void*);
    std::size_t (*length_of)(ByteBuffer*);
};
/// Set once by look_up_library(), before any slot is written.
extern Library g_library;

/// Looks at every copy of the core that is loaded, and finds what we call.
/// @return null: all is as we know it; else why not, for the level
/// @thread under the loader's lock
const char* look_up_library(const SlotSet& slots);

}  // namespace ringside::inject::grpc
