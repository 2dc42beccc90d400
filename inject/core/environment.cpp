#include "inject/core/environment.hpp"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>

#include "inject/core/c_library.hpp"
#include "inject/core/start_data.hpp"
#include "schema/units.hpp"

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

/// The first variables that are set, and room for the array that they stand in: setenv() would make each process start malloc() before it needs any. The
/// C library takes an environment that is not its own for the program's, and copies it before it grows.
struct alignas(schema::kPageBytes) Storage {
    char text[1536];
    char* entries[1024];
};
constinit Storage storage{};
RINGSIDE_START_DATA constinit std::size_t text_used = 0;
RINGSIDE_START_DATA constinit bool moved = false;

bool is_named(const char* entry, const char* name, std::size_t length) {
    return std::strncmp(entry, name, length) == 0 && entry[length] == '=';
}

/// @return false where there is no room
bool set_in_place(const char* name, const char* value) {
    const std::size_t length = std::strlen(name), value_bytes = std::strlen(value) + 1;
    const std::size_t bytes = length + 1 + value_bytes;
    if (environ == nullptr || bytes > sizeof storage.text - text_used) return false;
    constexpr std::size_t kMost = sizeof storage.entries / sizeof *storage.entries;
    std::size_t count = 0, at = kMost;
    for (; environ[count] != nullptr; ++count) {
        if (at == kMost && is_named(environ[count], name, length)) at = count;
    }
    if (count + 2 > kMost || (moved && environ != storage.entries)) return false;
    char* entry = storage.text + text_used;
    // NOLINTNEXTLINE(bugprone-not-null-terminated-result): '=' and the value follow
    std::memcpy(entry, name, length);
    entry[length] = '=';
    std::memcpy(entry + length + 1, value, value_bytes);
    text_used += bytes;
    if (!moved) std::memcpy(storage.entries, environ, (count + 1) * sizeof *environ);
    if (at == kMost) {
        storage.entries[count + 1] = nullptr;
        at = count;
    }
    storage.entries[at] = entry;
    environ = storage.entries;
    moved = true;
    return true;
}

}  // namespace

bool is_glibc() {
    return versioned_look_up() != nullptr;
}

void set_variable(const char* name, const char* value) {
    if (set_in_place(name, value)) return;
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
