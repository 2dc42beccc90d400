// One copy of NVTX, as its headers put it into a library: the tables of function pointers that an injection library fills, and calls through
// them (a load, a test, an indirect call). The headers themselves are not needed to build the bench.
#pragma once

#include <dlfcn.h>

#include "inject/sources/nvtx/abi.hpp"

namespace ringside::bench {

namespace nvtx = inject::nvtx;

inline nvtx::AnyFunction nvtx_core[nvtx::kCoreCount];
inline nvtx::AnyFunction nvtx_core2[nvtx::kCore2Count];
inline nvtx::AnyFunction* nvtx_core_places[nvtx::kCoreCount];
inline nvtx::AnyFunction* nvtx_core2_places[nvtx::kCore2Count];
inline nvtx::AnyFunction** nvtx_core_table = nvtx_core_places;
inline nvtx::AnyFunction** nvtx_core2_table = nvtx_core2_places;

inline int nvtx_module_table(std::uint32_t module, nvtx::AnyFunction*** table,
                             std::uint32_t* size) {
    const bool core = module == nvtx::kCoreModule;
    if (!core && module != nvtx::kCore2Module) return 0;
    *table = core ? nvtx_core_table : nvtx_core2_table;
    *size = core ? std::uint32_t{nvtx::kCoreCount} : std::uint32_t{nvtx::kCore2Count};
    return 1;
}

inline const void* nvtx_export_table(std::uint32_t id) {
    static const nvtx::CallbacksTable kCallbacks{sizeof kCallbacks, nvtx_module_table};
    return id == nvtx::kCallbacksTable ? &kCallbacks : nullptr;
}

/// Hands the tables to the shim of this process, as NVTX does at a program's first call.
/// @return false: there is none
inline bool start_nvtx() {
    for (std::uint32_t i = 1; i < nvtx::kCoreCount; ++i) nvtx_core_places[i] = &nvtx_core[i];
    for (std::uint32_t i = 1; i < nvtx::kCore2Count; ++i) nvtx_core2_places[i] = &nvtx_core2[i];
    using Initialise = int (*)(nvtx::GetExportTable);
    const auto initialise =
        reinterpret_cast<Initialise>(::dlsym(RTLD_DEFAULT, "InitializeInjectionNvtx2"));
    return initialise != nullptr && initialise(nvtx_export_table) == 1 &&
           nvtx_core[nvtx::kRangePushA] != nullptr &&
           nvtx_core2[nvtx::kDomainRangePushEx] != nullptr;
}

template <class Result, class... Arguments>
inline Result call_nvtx(const nvtx::AnyFunction& place, Arguments... arguments) {
    const nvtx::AnyFunction function = place;
    if (function == nullptr) return Result{};
    return reinterpret_cast<Result (*)(Arguments...)>(function)(arguments...);
}

/// nvtxRangePushA(), nvtxRangePop()
inline void nvtx_push(const char* name) {
    call_nvtx<int>(nvtx_core[nvtx::kRangePushA], name);
}
inline void nvtx_pop() {
    call_nvtx<int>(nvtx_core[nvtx::kRangePop]);
}

/// nvtxDomainCreateA(), nvtxDomainRegisterStringA()
inline void* nvtx_domain(const char* name) {
    return call_nvtx<void*>(nvtx_core2[nvtx::kDomainCreateA], name);
}
inline void* nvtx_register(void* domain, const char* text) {
    return call_nvtx<void*>(nvtx_core2[nvtx::kDomainRegisterStringA], domain, text);
}

/// nvtxDomainRangePushEx(), nvtxDomainRangePop(): the event as programs fill it for a registered string.
inline void nvtx_push_registered(void* domain, const void* string) {
    nvtx::EventAttributes event{};
    event.version = 3;
    event.size = sizeof event;
    event.message_type = nvtx::kMessageRegistered;
    event.message = string;
    const nvtx::EventAttributes* const given = &event;
    call_nvtx<int>(nvtx_core2[nvtx::kDomainRangePushEx], domain, given);
}
inline void nvtx_domain_pop(void* domain) {
    call_nvtx<int>(nvtx_core2[nvtx::kDomainRangePop], domain);
}

}  // namespace ringside::bench
