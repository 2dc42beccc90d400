// A libtorch_cpu (or with -DC10 a libc10) of which the shim finds what it needs, and no more: its ranges can be recorded, but it has no inputSizes();
// its allocator reports to nobody, or (libc10) by the functions that torch has for it.
#include <stddef.h>
#include <stdint.h>

#ifdef C10

void memory_new(void*, void*, size_t) __asm__("_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm");
void memory_delete(void*, void*) __asm__("_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv");

static volatile size_t reported;

void memory_new(void* reporter, void* data, size_t bytes) {
    reported += bytes + (reporter == data);
}
void memory_delete(void* reporter, void* data) {
    reported -= reporter == data;
}
// Through slots, as an allocator's calls go.
void allocate_once(void) {
    memory_new(NULL, &reported, 1);
    memory_delete(NULL, &reported);
}

#else

/// at::RecordFunctionCallback and at::RecordFunction, as torch 2.15 has them.
struct Callback {
    void* (*start)(void** context_out, const char* range);
    void (*end)(const char* range, void* context);
    double sampling_probability;
    uint8_t choices[16];
};
struct Range {
    void* context;
    char unused[80];
    uint64_t thread;
    uint8_t scope;
    char unused_2[103];
    int64_t sequence;
    char unused_3[96];
    uint64_t forward_thread;
    uint64_t handle;
};
_Static_assert(sizeof(struct Callback) == 40 && offsetof(struct Range, thread) == 88 &&
                   offsetof(struct Range, sequence) == 200 &&
                   offsetof(struct Range, forward_thread) == 304,
               "as torch 2.15 has them");

enum { kThread = 7 };

static struct Callback registered;
static uint64_t handles = 1000;

uint64_t add_callback(struct Callback) __asm__(
    "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
void remove_callback(uint64_t) __asm__("_ZN2at14removeCallbackEm");
_Bool has_callbacks(void) __asm__("_ZN2at18hasGlobalCallbacksEv");
uint64_t thread_id(void) __asm__("_ZN2at14RecordFunction15currentThreadIdEv");
const char* range_name(const struct Range*) __asm__("_ZNK2at14RecordFunction4nameEv");
_Bool is_async(const struct Range*) __asm__("_ZNK2at14RecordFunction7isAsyncEv");
void construct(struct Range*, uint8_t) __asm__("_ZN2at14RecordFunctionC1ENS_11RecordScopeE");
void destroy(struct Range*) __asm__("_ZN2at14RecordFunctionD1Ev");
void before(struct Range*, const char*, int64_t) __asm__("_ZN2at14RecordFunction6beforeEPKcl");

uint64_t add_callback(struct Callback callback) {
    registered = callback;
    return ++handles;
}
void remove_callback(uint64_t handle) {
    (void)handle;
    registered = (struct Callback){0};
}
_Bool has_callbacks(void) {
    return registered.start != NULL;
}
uint64_t thread_id(void) {
    return kThread;
}
const char* range_name(const struct Range* range) {
    (void)range;
    return "range";
}
_Bool is_async(const struct Range* range) {
    (void)range;
    return 0;
}
void construct(struct Range* range, uint8_t scope) {
    range->thread = kThread;
    range->scope = scope;
    range->handle = ++handles;
}
void before(struct Range* range, const char* name, int64_t sequence) {
    (void)name;
    range->sequence = sequence;
    if (registered.start != NULL) registered.start(&range->context, (const char*)range);
}
void destroy(struct Range* range) {
    if (registered.end != NULL) registered.end((const char*)range, range->context);
}
/// A range as a job has them: what has recorded nothing need not be in a dump.
void one_range(void) {
    struct Range range = {0};
    construct(&range, 0);
    before(&range, "range", -1);
    destroy(&range);
}

#endif
