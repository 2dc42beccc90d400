// Variables as the C library has them. Programs bring their own setenv() (bash does: its own shell variables), which stands in front of the
// C library's for everybody, and is not ready for callers before main.
#pragma once

namespace ringside::inject {

/// Whether the C library is glibc. On another (musl) the shim is loaded and does nothing: it must not keep a traced shell's children from starting.
bool is_glibc();

/// @thread main thread, at load, before main
void set_variable(const char* name, const char* value);
void unset_variable(const char* name);

/// A function of the C library's that is in every process; to tell where that library lies. Null where it can't be told.
const void* in_c_library();

}  // namespace ringside::inject
