#include "inject/core/c_library.hpp"

#include <dlfcn.h>

#include <atomic>

#include "inject/core/start_data.hpp"

// Weak: null where the library that has them is not in the process. The versions are pinned by floor.hpp.
#pragma weak dlvsym
#pragma weak pthread_attr_setstacksize
#pragma weak pthread_create
#pragma weak pthread_join
#pragma weak pthread_key_create
#pragma weak pthread_mutex_timedlock
#pragma weak pthread_mutex_trylock
#pragma weak pthread_setspecific

// NOLINTBEGIN(readability-identifier-naming): the C library's own names
extern "C" {
// glibc's own way to load a library from within the C library; gone in 2.34, where nothing is missing.
void* __libc_dlopen_mode(const char* name, int mode) __attribute__((weak));
void* __libc_dlsym(void* handle, const char* symbol) __attribute__((weak));
}
// NOLINTEND(readability-identifier-naming)

namespace ringside::inject {

namespace {

/// __RTLD_DLOPEN: says that a caller of dlopen()'s kind is there.
constexpr int kAsDlopen = static_cast<int>(0x80000000u);

/// @param linked  what the loader has found
template <class Function>
Function* found(Function* linked, const char* library, const char* symbol) {
    if (linked != nullptr) return linked;
    if (&__libc_dlopen_mode == nullptr || &__libc_dlsym == nullptr) return nullptr;
    void* handle = __libc_dlopen_mode(library, RTLD_NOW | RTLD_GLOBAL | kAsDlopen);
    if (handle == nullptr) return nullptr;
    return reinterpret_cast<Function*>(__libc_dlsym(handle, symbol));
}

template <class Function>
Function* of_libpthread(Function* linked, const char* symbol) {
    return found(linked, "libpthread.so.0", symbol);
}

RINGSIDE_START_DATA constinit ThreadFunctions functions{};
RINGSIDE_START_DATA constinit std::atomic<const ThreadFunctions*> complete{nullptr};
RINGSIDE_START_DATA constinit std::atomic<VersionedLookUp> look_up{nullptr};

}  // namespace

VersionedLookUp versioned_look_up() {
    VersionedLookUp known = look_up.load(std::memory_order_relaxed);
    if (known != nullptr) return known;
    known = found(&dlvsym, "libdl.so.2", "dlvsym");
    look_up.store(known, std::memory_order_relaxed);
    return known;
}

const ThreadFunctions* thread_functions() {
    // SYNC(threads): pairs with the release below.
    const ThreadFunctions* known = complete.load(std::memory_order_acquire);
    if (known != nullptr) return known;
    functions = {
        of_libpthread(&pthread_key_create, "pthread_key_create"),
        of_libpthread(&pthread_setspecific, "pthread_setspecific"),
        of_libpthread(&pthread_create, "pthread_create"),
        of_libpthread(&pthread_join, "pthread_join"),
        of_libpthread(&pthread_attr_setstacksize, "pthread_attr_setstacksize"),
        of_libpthread(&pthread_mutex_timedlock, "pthread_mutex_timedlock"),
        of_libpthread(&pthread_mutex_trylock, "pthread_mutex_trylock"),
    };
    const bool whole = functions.key_create != nullptr && functions.set_specific != nullptr &&
                       functions.create != nullptr && functions.join != nullptr &&
                       functions.set_stack_size != nullptr && functions.timed_lock != nullptr &&
                       functions.try_lock != nullptr;
    if (!whole) return nullptr;
    // SYNC(threads): all are there; pairs with the acquire above.
    complete.store(&functions, std::memory_order_release);
    return &functions;
}

}  // namespace ringside::inject
