// Memory of tensors, on request: c10 is told of each allocation and deallocation, whether or not torch's profiler is on.
// CPU: hooks in libc10's slots of its reporter's two functions. A deallocation has no size: it is remembered from the allocation, and what was
// there before the capture goes unseen (as with torch's own profiler).
// CUDA: a hook in libc10_cuda's slot of the function that it reports with, sizes and all.
#pragma once

#include "inject/core/slots/slots.hpp"

namespace ringside::inject::torch {

/// Whose memory can be recorded in this torch; CUDA's also where there is none.
struct MemorySlots {
    bool cpu = false;
    bool cuda = false;
};

/// Finds the slots.
MemorySlots prepare_memory();

void attach_memory();
/// Writes the originals back and forgets what was allocated.
void detach_memory();

}  // namespace ringside::inject::torch
