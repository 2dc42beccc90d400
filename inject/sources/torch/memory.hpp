// CPU memory of tensors, on request: c10 tells a reporter of each allocation and deallocation, whether or not torch's profiler is on; hooks in
// libc10's slots of the two functions record them. A deallocation has no size: it is remembered from the allocation, and what was there
// before the capture goes unseen (as with torch's own profiler).
#pragma once

#include "inject/core/slots/slots.hpp"

namespace ringside::inject::torch {

/// Finds the slots.
/// @return whether memory can be recorded in this torch
bool prepare_memory();

void attach_memory();
/// Writes the originals back and forgets what was allocated.
void detach_memory();

}  // namespace ringside::inject::torch
