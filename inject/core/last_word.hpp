// _exit() runs no destructor: a hook in the executable's own calls of it says the last word instead. Shells end so (dash), and what Python's
// multiprocessing starts.
#pragma once

namespace ringside::inject {

/// Writes the slots of `_exit` in the executable and in the interpreter's library, where the program is one linked to it.
/// @thread main thread, at load
void hear_quick_exit();

}  // namespace ringside::inject
