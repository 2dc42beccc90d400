// Noticing that a framework has been loaded: dlopen and dlsym are exported and jumped through (the real function returns to the real
// caller, so RUNPATH and RTLD_NEXT mean what they always meant). What dlopen() loads is seen at the next call of either.
#pragma once

namespace ringside::inject {

/// Until then the stubs only jump.
/// @thread main thread, at load, when everything else is in place
void start_loader_watch();

}  // namespace ringside::inject
