#include "inject/core/injection.hpp"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>

#include "inject/core/environment.hpp"
#include "inject/core/fixed_text.hpp"

namespace ringside::inject {

namespace {

bool own_path(char* out) {
    Dl_info info{};
    return dladdr(reinterpret_cast<void*>(&offer_injections), &info) != 0 &&
           info.dli_fname != nullptr && realpath(info.dli_fname, out) != nullptr;
}

/// Whether `path` leads to this library, by whatever name.
bool is_own(const char* path, const char* own) {
    char resolved[PATH_MAX];
    if (std::strcmp(path, own) == 0) return true;
    return realpath(path, resolved) != nullptr && std::strcmp(resolved, own) == 0;
}

void offer(const Injection& injection, const char* own) {
    const char* present = secure_getenv(injection.variable);
    if (present != nullptr && *present != 0 && is_own(present, own)) return;
    // Handed down by a parent whose variable has been changed or taken away since: its tool is not meant any more.
    if (present == nullptr || *present == 0) {
        unset_variable(injection.next_variable);
    } else {
        set_variable(injection.next_variable, present);
    }
    set_variable(injection.variable, own);
}

/// @return 1 at the first of the two objects, 2 at the second
int first_of_two(dl_phdr_info* info, std::size_t, void* bases) {
    const auto* pair = static_cast<const void* const*>(bases);
    const auto base = reinterpret_cast<const void*>(info->dlpi_addr);
    return base == pair[0] ? 1 : base == pair[1] ? 2 : 0;
}

}  // namespace

void offer_injections() {
    char own[PATH_MAX];
    if (!own_path(own)) return;
    offer(kNvtxInjection, own);
    offer(kIttInjection, own);
}

void* load_next_tool(const Injection& injection, bool* failed) {
    const char* path = secure_getenv(injection.next_variable);
    char own[PATH_MAX];
    *failed = false;
    if (path == nullptr || *path == 0 || (own_path(own) && is_own(path, own))) return nullptr;
    void* tool = dlopen(path, RTLD_LAZY);
    *failed = tool == nullptr;
    return tool;
}

bool own_directory(char* out, unsigned long bytes) {
    char path[PATH_MAX];
    if (!own_path(path)) return false;
    const auto length = static_cast<std::size_t>(base_name(path) - path);
    if (length >= bytes) return false;
    std::memcpy(out, path, length);
    out[length] = 0;
    return true;
}

bool is_preloaded() {
    // Preloads stand before what the program needs, the C library among it; what is loaded later stands behind.
    Dl_info own{}, libc{};
    if (dladdr(reinterpret_cast<void*>(&offer_injections), &own) == 0 ||
        dladdr(in_c_library(), &libc) == 0) {
        return false;
    }
    const void* bases[2] = {own.dli_fbase, libc.dli_fbase};
    return dl_iterate_phdr(first_of_two, bases) == 1;
}

}  // namespace ringside::inject
