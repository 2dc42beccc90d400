// What glibc before 2.34 keeps in libdl and libpthread, asked for without needing them: on newer ones both are empty files, and mapping them would cost
// each process's start as much as all else that the shim does there. Where a function is not in the process, its library is loaded for it.
#pragma once

#include <pthread.h>
#include <time.h>

namespace ringside::inject {

/// dlvsym(), or null on another C library (musl).
using VersionedLookUp = void* (*)(void* handle, const char* symbol, const char* version);
VersionedLookUp versioned_look_up();

/// @return all of them, or null where one can't be had
/// @thread thread-safe; the first call at load, before main
struct ThreadFunctions {
    int (*key_create)(pthread_key_t*, void (*)(void*));
    int (*set_specific)(pthread_key_t, const void*);
    int (*create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    int (*join)(pthread_t, void**);
    int (*set_stack_size)(pthread_attr_t*, size_t);
    int (*timed_lock)(pthread_mutex_t*, const timespec*);
    int (*try_lock)(pthread_mutex_t*);
};
const ThreadFunctions* thread_functions();

}  // namespace ringside::inject
