// The way in: NVTX loads the library that NVTX_INJECTION64_PATH names at a program's first NVTX call, and calls this entry with a way to
// its tables; once for each copy of NVTX in the process.
#include <errno.h>

#include "inject/core/emit.hpp"
#include "inject/core/source.hpp"
#include "inject/sources/nvtx/calls.hpp"
#include "inject/sources/nvtx/next_tool.hpp"

namespace ringside::inject::nvtx {
namespace {

using schema::SourceLevel;

/// One module's table in one copy of NVTX, and what stood in its places before any tool wrote there (NVTX's own start-up functions).
struct Module {
    std::uint32_t id;
    std::uint32_t count;  ///< of the places that we know
    AnyFunction** table = nullptr;
    AnyFunction before[kPlaces] = {};

    bool read(const CallbacksTable& callbacks) {
        std::uint32_t size = 0;
        if (callbacks.module_table(id, &table, &size) == 0 || table == nullptr) return false;
        if (size < count) count = size;
        for (std::uint32_t i = 1; i < count; ++i)
            before[i] = table[i] != nullptr ? *table[i] : nullptr;
        return true;
    }

    void take() {
        for (std::uint32_t i = 1; i < count && table != nullptr; ++i) {
            if (table[i] == nullptr) continue;
            // What has changed since is the other tool's; another copy's may differ from the first one's, and then keeps the tool alone.
            const AnyFunction present = *table[i];
            if (present != before[i] && !remember_next(id, i, present)) continue;
            const AnyFunction ours = id == kCoreModule ? core_call(i) : core2_call(i);
            if (ours != nullptr) *table[i] = ours;
        }
    }
};

int initialise(GetExportTable get_table) {
    if (get_table == nullptr) return 0;
    const auto* callbacks = static_cast<const CallbacksTable*>(get_table(kCallbacksTable));
    const bool readable = callbacks != nullptr && callbacks->struct_size >= sizeof *callbacks &&
                          callbacks->module_table != nullptr;
    Module core{kCoreModule, kCoreCount};
    Module core2{kCore2Module, kCore2Count};
    const bool has_core = readable && core.read(*callbacks);
    const bool has_core2 = readable && core2.read(*callbacks);
    bool failed = false;
    const bool chained = start_next_tool(get_table, &failed);
    // Not traced: the other tool alone, or none.
    if (!has_core && !has_core2) return chained ? 1 : 0;
    const bool whole = has_core && has_core2;
    const char* const reason =
        failed   ? "the tool that NVTX_INJECTION64_PATH named before us can't be loaded"
        : !whole ? "a library's NVTX has no table of ranges, or none of domains"
                 : "";
    const SourceLevel level = whole ? SourceLevel::kFull : SourceLevel::kDegraded;
    if (!announce_source(SourceId::kNvtx, level, reason)) return chained ? 1 : 0;
    core.take();
    core2.take();
    return 1;
}

}  // namespace
}  // namespace ringside::inject::nvtx

// NOLINTNEXTLINE(readability-identifier-naming): NVTX looks for this name
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    ringside::inject::nvtx::GetExportTable get_table) {
    const int saved_errno = errno;
    const int result = ringside::inject::nvtx::initialise(get_table);
    errno = saved_errno;
    return result;
}
