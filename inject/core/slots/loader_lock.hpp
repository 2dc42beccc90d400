// The loader from behind its own names: the real dlopen and dlsym (ours are exported over them), its lock, and what it has loaded.
//
// The lock is had by a real dlsym() of an IFUNC symbol of ours: the C library runs the symbol's resolver with dl_load_lock held, and we
// do our work in there. dlopen(RTLD_NOLOAD), the documented way, runs other libraries' constructors out of order when it is called
// inside one (seen: a crash in `import torch`).
#pragma once

#include <cstdint>

namespace ringside::inject {

/// Finds the real functions. Hooks of ours that run before our constructor (other libraries' constructors load and look up) call it
/// too.
/// @return whether dlsym was found; without it nothing is ever attached
/// @thread thread-safe
bool resolve_loader();

/// The C library's dlsym, or that of the preload behind us.
using LookUp = void* (*)(void* handle, const char* symbol);
LookUp real_dlsym();

/// Runs `work` while no other thread loads or unloads an object, and none is half-way through loading: constructors run under this
/// lock. Nested calls run at once. Waits for the lock: never from a hook, never while holding what a constructor may want.
/// @return false where the lock could not be had this way: `work` did not run
bool with_loader_lock(void (*work)(void*), void* argument);

/// A number that changes whenever objects are loaded or unloaded. Cheap; may be called with the lock held.
std::uint64_t object_generation();

}  // namespace ringside::inject
