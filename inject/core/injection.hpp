// The ways by which frameworks load a tool: an environment variable with a library's path, and an entry point in it. The constructor puts
// our path there before main; a tool that was named there already is remembered in a variable of ours, and called after us.
#pragma once

namespace ringside::inject {

/// A framework's variable, and ours for the tool that it named before.
struct Injection {
    const char* variable;
    const char* next_variable;
};
inline constexpr Injection kNvtxInjection{"NVTX_INJECTION64_PATH",
                                          "RINGSIDE_NEXT_NVTX_INJECTION64_PATH"};
inline constexpr Injection kIttInjection{"INTEL_LIBITTNOTIFY64",
                                         "RINGSIDE_NEXT_INTEL_LIBITTNOTIFY64"};
inline constexpr Injection kCudaInjection{"CUDA_INJECTION64_PATH",
                                          "RINGSIDE_NEXT_CUDA_INJECTION64_PATH"};

/// Sets all of them.
/// @thread main thread, at load, before main
void offer_injections();

/// The tool that was named before us, loaded.
/// @return its handle for dlsym(); null: none
/// @param failed  set where one was named and could not be loaded
void* load_next_tool(const Injection& injection, bool* failed);

/// `<directory of this library>/`, resolved; false where it can't be told.
bool own_directory(char* out, unsigned long bytes);

/// Whether this library was preloaded. A framework may load it too, by a variable that a traced parent handed down: LD_PRELOAD alone
/// decides who is traced.
bool is_preloaded();

}  // namespace ringside::inject
