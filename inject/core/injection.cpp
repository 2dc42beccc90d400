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

// The loader's list is walked by hand: dladdr() also looks for the nearest symbol, in the C library among thousands, in each process.

bool holds(const dl_phdr_info& info, const void* address) {
    const auto offset = reinterpret_cast<std::uintptr_t>(address) - info.dlpi_addr;
    for (ElfW(Half) i = 0; i < info.dlpi_phnum; ++i) {
        const ElfW(Phdr)& header = info.dlpi_phdr[i];
        if (header.p_type == PT_LOAD && offset - header.p_vaddr < header.p_memsz) return true;
    }
    return false;
}

int read_own_name(dl_phdr_info* info, std::size_t, void* out) {
    if (!holds(*info, reinterpret_cast<const void*>(&offer_injections))) return 0;
    *static_cast<const char**>(out) = info->dlpi_name;
    return 1;
}

/// @return the name that this library was loaded by, or null
const char* own_name() {
    const char* name = nullptr;
    dl_iterate_phdr(read_own_name, &name);
    return name;
}

bool own_path(char* out) {
    const char* name = own_name();
    return name != nullptr && realpath(name, out) != nullptr;
}

/// By itself for its stack: a child of a process with the shim has our own path there, and needs none of it.
[[gnu::noinline]] bool lead_to_one(const char* path, const char* own) {
    char resolved[PATH_MAX], own_resolved[PATH_MAX];
    return realpath(path, resolved) != nullptr && realpath(own, own_resolved) != nullptr &&
           std::strcmp(resolved, own_resolved) == 0;
}

/// Whether `path` leads to this library, by whatever name.
bool is_own(const char* path, const char* own) {
    return std::strcmp(path, own) == 0 || lead_to_one(path, own);
}

void offer(const Injection& injection, const char* own) {
    const char* present = secure_getenv(injection.variable);
    if (present != nullptr && *present != 0 && is_own(present, own)) return;
    // Handed down by a parent whose variable has been changed or taken away since: its tool is not meant any more.
    if (present == nullptr || *present == 0) {
        if (secure_getenv(injection.next_variable) != nullptr)
            unset_variable(injection.next_variable);
    } else {
        set_variable(injection.next_variable, present);
    }
    set_variable(injection.variable, own);
}

/// @return 1 at this library, 2 at the C library, which `address` lies in
int first_of_two(dl_phdr_info* info, std::size_t, void* address) {
    if (holds(*info, reinterpret_cast<const void*>(&offer_injections))) return 1;
    return holds(*info, address) ? 2 : 0;
}

}  // namespace

void offer_injections() {
    char resolved[PATH_MAX];
    const char* own = own_name();
    if (own == nullptr) return;
    // A relative one would lead elsewhere after a chdir().
    if (*own != '/') own = realpath(own, resolved);
    if (own == nullptr) return;
    offer(kNvtxInjection, own);
    offer(kIttInjection, own);
    offer(kCudaInjection, own);
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
    return dl_iterate_phdr(first_of_two, const_cast<void*>(in_c_library())) == 1;
}

}  // namespace ringside::inject
