#include "inject/core/environment.hpp"

#include <dlfcn.h>
#include <stdlib.h>

#include "inject/core/c_library.hpp"

namespace ringside::inject {

namespace {

/// x86-64's C library has these under this version for ever.
template <class Function>
Function* of_c_library(Function*, const char* name) {
    const VersionedLookUp look_up = versioned_look_up();
    return look_up == nullptr
               ? nullptr
               : reinterpret_cast<Function*>(look_up(RTLD_NEXT, name, "GLIBC_2.2.5"));
}

}  // namespace

bool is_glibc() {
    return versioned_look_up() != nullptr;
}

void set_variable(const char* name, const char* value) {
    auto* set = of_c_library(&::setenv, "setenv");
    if (set != nullptr) set(name, value, 1);
}

void unset_variable(const char* name) {
    auto* unset = of_c_library(&::unsetenv, "unsetenv");
    if (unset != nullptr) unset(name);
}

const void* in_c_library() {
    return reinterpret_cast<const void*>(of_c_library(&::setenv, "setenv"));
}

}  // namespace ringside::inject
