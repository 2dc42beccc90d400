// ITT's binary interface, as ittnotify_config.h lays it down: what a collector is handed, and what programs pass. The layouts have not
// changed since version 3.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringside::inject::itt {

using AnyFunction = void (*)();

/// One function of the API in one copy of ITT's static part: where its pointer is, and what stands for "nobody is interested".
struct Api {
    const char* name;
    AnyFunction* place;
    AnyFunction start_up;
    AnyFunction nothing;  ///< may be null: callers check
    int group;
};
static_assert(sizeof(Api) == 40);

struct Domain {
    volatile int flags;  ///< 0: switched off, callers look before they call
    const char* name;
    void* wide_name;
    int extra1;
    void* extra2;
    Domain* next;
};
static_assert(sizeof(Domain) == 48);

struct StringHandle {
    const char* text;
    void* wide_text;
    int extra1;
    void* extra2;
    StringHandle* next;
};
static_assert(sizeof(StringHandle) == 40);

struct Global {
    std::uint8_t magic[8];
    unsigned long version[3];
    volatile long states[3];
    std::uint8_t mutex[40];  // pthread_mutex_t
    void* library;
    void* error_handler;
    const char** library_path;
    Api* apis;  ///< ends with a null name
    Global* next;
    void* threads;
    Domain* domains;        ///< made before the collector was there
    StringHandle* strings;  ///< as domains
};
static_assert(offsetof(Global, apis) == 120 && offsetof(Global, strings) == 152);

struct Id {
    std::uint64_t words[3];
};

/// __itt_metadata_type.
enum NumberType : std::int32_t {
    kNumberU64 = 1,
    kNumberS64,
    kNumberU32,
    kNumberS32,
    kNumberU16,
    kNumberS16,
    kNumberFloat,
    kNumberDouble
};

}  // namespace ringside::inject::itt
