/* Ringside's public API: ranges, marks, counters, iterations and RPCs of a program that knows itself better than any framework does.
 *
 *     #include <ringside.h>                            // nothing to link: a traced process has the functions, another one has not
 *     ringside_range_push("load");  ...  ringside_range_pop();
 *
 * Without Ringside in the process, and without a capture, a call is some loads and a branch: pushes and pops look at the capture's word here,
 * the others call a function that does. Nothing here allocates, blocks or fails: what can't be recorded is left out. C99 and C++; gcc or clang, since it uses their atomics. With a C library
 * older than glibc 2.34 a program that wants to be traced links libdl (-ldl), as it would for dlsym().
 *
 * RPCs: the caller makes a call, puts its request id into whatever carries the request, and ends the call when the answer is there; the callee
 * takes the id out, serves, and ends. Both halves are then one call in every view, across processes and nodes.
 *
 *     ringside_rpc what = {sizeof what, RINGSIDE_SYNC, "lookup", NULL, "server 3", bytes};
 *     ringside_call call = ringside_client_begin(&what);             ringside_request id;
 *     char id[RINGSIDE_TEXT_BYTES];                                  ringside_extract_text(header, strlen(header), &id);
 *     if (ringside_inject_text(&call, id) != 0) send(..., id);       ringside_call call = ringside_server_begin(&id, &what);
 *     ...                                                            ...   what runs here belongs to the request
 *     ringside_client_end(&call, RINGSIDE_OK, bytes);                ringside_server_end(&call, RINGSIDE_OK, bytes);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef RINGSIDE_H
#define RINGSIDE_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an event has beside its name. Set `size`; what is zero is not there. Texts need not outlive the call. */
enum { RINGSIDE_NO_PAYLOAD = 0, RINGSIDE_UNSIGNED = 1, RINGSIDE_SIGNED = 2, RINGSIDE_DOUBLE = 3 };
typedef struct ringside_attributes {
    uint32_t size;
    uint32_t colour; /* ARGB */
    const char* domain;
    const char* category;
    uint32_t payload_type;
    uint32_t reserved;
    union {
        uint64_t u;
        int64_t i;
        double d;
    } payload;
} ringside_attributes;

/* A name of the program's own, for ranges that are many: `static ringside_name load = RINGSIDE_NAME("load");`. Ringside keeps in it what it has found
 * out, so that nothing is looked up and the text is not read again. It and its text live as long as the process, in memory
 * that no other process shares. */
typedef struct ringside_name {
    const char* text;
    uint64_t known; /* Ringside's own; 0 at first */
} ringside_name;
/* clang-format off */
#define RINGSIDE_NAME(text) {text, 0}
/* clang-format on */

/* How a caller calls, as far as it is known; the first word of the call's name in the views. */
enum { RINGSIDE_UNKNOWN = 0, RINGSIDE_SYNC = 1, RINGSIDE_ASYNC = 2 };
/* How a half ended. */
enum {
    RINGSIDE_OK = 0,
    RINGSIDE_ERROR = 1,
    RINGSIDE_TIMEOUT = 2,
    RINGSIDE_PEER_GONE = 3,
    RINGSIDE_CANCELLED = 4
};

/* One RPC, as its caller or its callee sees it. */
typedef struct ringside_rpc {
    uint32_t size;
    uint32_t mode;
    const char* method;
    const char* service; /* or NULL */
    const char* peer; /* the other side's worker name (ringside_set_worker) or address; or NULL */
    uint64_t bytes;   /* of the request; 0: unknown */
} ringside_rpc;

/* What travels with a request. All zero: nothing came. */
typedef struct ringside_request {
    uint64_t trace_hi, trace_lo, span;
} ringside_request;

/* A half that has begun; all zero where nothing is recorded. Keep it until its end; it may end on another thread. */
typedef struct ringside_call {
    uint64_t key;
    ringside_request id;
    uint64_t before_key; /* what the thread served before */
    ringside_request before;
} ringside_call;

/* The functions of a traced process. Grows at its end: `size` says how far it goes; 0: there are none, and nothing is captured. */
typedef struct ringside_functions {
    uint32_t size;
    uint32_t version;
    int (*active)(void);
    void (*range_push)(const char* name, const ringside_attributes* attributes);
    void (*range_pop)(const char* domain);
    uint64_t (*range_start)(const char* name, const ringside_attributes* attributes);
    void (*range_end)(uint64_t id);
    void (*mark)(const char* name, const ringside_attributes* attributes);
    void (*counter)(const char* name, const ringside_attributes* attributes);
    void (*iteration)(const char* name);
    void (*name_thread)(const char* name);
    void (*set_worker)(const char* name, int32_t id);
    void (*client_begin)(const ringside_rpc* what, ringside_call* call);
    void (*client_end)(const ringside_call* call, uint32_t status, uint64_t bytes);
    void (*server_begin)(const ringside_request* id, const ringside_rpc* what, ringside_call* call);
    void (*server_end)(const ringside_call* call, uint32_t status, uint64_t bytes);
    void (*serve)(ringside_call* call, int on);
    const void*
        word_distance; /* an intptr_t: from word_base to the capture's word; another one in a forked child */
    const void* word_base;
    /* Told what the word says: it is odd while a capture is on. */
    void (*push_name)(uint32_t word, ringside_name* name);
    void (*push_text)(uint32_t word, const char* name);
    void (*pop)(uint32_t word);
} ringside_functions;

/* So that a program is linked without libdl too, and then finds nothing. */
#pragma weak dlsym

__attribute__((noinline, unused)) static const ringside_functions* ringside_find_functions_(void) {
    static const intptr_t here = 0;
    static const uint32_t off = 0;
    static ringside_functions none;
    const ringside_functions* (*get)(uint32_t) = NULL;
    const ringside_functions* found = NULL;
    void* symbol = dlsym != NULL ? dlsym(NULL /* RTLD_DEFAULT */, "ringside_api") : NULL;
    memcpy(&get, &symbol, sizeof get);
    if (get != NULL) found = get((uint32_t)sizeof(ringside_functions));
    if (found != NULL) return found;
    __atomic_store_n(&none.word_distance, (const void*)&here, __ATOMIC_RELAXED);
    __atomic_store_n(&none.word_base, (const void*)&off, __ATOMIC_RELAXED);
    return &none;
}
/* The functions, or a table of size 0: looked up once in each source file that includes this. */
static inline const ringside_functions* ringside_functions_here(void) {
    static const ringside_functions* found;
    const ringside_functions* functions = __atomic_load_n(&found, __ATOMIC_ACQUIRE);
    if (__builtin_expect(functions == NULL, 0)) {
        functions = ringside_find_functions_();
        __atomic_store_n(&found, functions, __ATOMIC_RELEASE);
    }
    return functions;
}
/* What the capture's word says. */
static inline uint32_t ringside_word_(const ringside_functions* functions) {
    const intptr_t distance =
        __atomic_load_n((const intptr_t*)functions->word_distance, __ATOMIC_ACQUIRE);
    return __atomic_load_n((const uint32_t*)((const char*)functions->word_base + distance),
                           __ATOMIC_RELAXED);
}
#define RINGSIDE_IF_HERE(f)                                        \
    const ringside_functions* const f = ringside_functions_here(); \
    if (f->size != 0)
#define RINGSIDE_IF_ON(f, word)                                    \
    const ringside_functions* const f = ringside_functions_here(); \
    const uint32_t word = ringside_word_(f);                       \
    if (__builtin_expect(word & 1, 0))

/* Whether a capture is on: worth asking before a name is put together. */
static inline int ringside_active(void) {
    RINGSIDE_IF_ON(f, word) return 1;
    return 0;
}

/* --- ranges of one thread: what is popped is the innermost of its domain (NULL: the one without a name) --- */
static inline void ringside_range_push_with(const char* name,
                                            const ringside_attributes* attributes) {
    RINGSIDE_IF_HERE(f) f->range_push(name, attributes);
}
static inline void ringside_range_push(const char* name) {
    RINGSIDE_IF_ON(f, word) f->push_text(word, name != NULL ? name : "");
}
static inline void ringside_range_push_name(ringside_name* name) {
    if (name == NULL) {
        ringside_range_push(NULL);
    } else {
        RINGSIDE_IF_ON(f, word) f->push_name(word, name);
    }
}
static inline void ringside_range_pop_of(const char* domain) {
    RINGSIDE_IF_HERE(f) f->range_pop(domain);
}
static inline void ringside_range_pop(void) {
    RINGSIDE_IF_ON(f, word) f->pop(word);
}

/* --- ranges that may end on another thread; 0 is an id too: of a range that is not recorded --- */
static inline uint64_t ringside_range_start_with(const char* name,
                                                 const ringside_attributes* attributes) {
    RINGSIDE_IF_HERE(f) return f->range_start(name, attributes);
    return 0;
}
static inline uint64_t ringside_range_start(const char* name) {
    return ringside_range_start_with(name, NULL);
}
static inline void ringside_range_end(uint64_t id) {
    RINGSIDE_IF_HERE(f) f->range_end(id);
}

/* --- points in time --- */
static inline void ringside_mark_with(const char* name, const ringside_attributes* attributes) {
    RINGSIDE_IF_HERE(f) f->mark(name, attributes);
}
static inline void ringside_mark(const char* name) {
    ringside_mark_with(name, NULL);
}
/* The number is the payload. */
static inline void ringside_counter_with(const char* name, const ringside_attributes* attributes) {
    RINGSIDE_IF_HERE(f) f->counter(name, attributes);
}
static inline void ringside_counter(const char* name, int64_t value) {
    ringside_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.size = (uint32_t)sizeof attributes;
    attributes.payload_type = RINGSIDE_SIGNED;
    attributes.payload.i = value;
    ringside_counter_with(name, &attributes);
}
/* The end of one turn of a loop; turns are counted from 1 in each capture, for each name. */
static inline void ringside_iteration(const char* name) {
    RINGSIDE_IF_HERE(f) f->iteration(name);
}

/* --- who is who --- */
static inline void ringside_name_thread(const char* name) {
    RINGSIDE_IF_HERE(f) f->name_thread(name);
}
/* The process's name among the job's, and its number (-1: none): how others name it as their peer. */
static inline void ringside_set_worker(const char* name, int32_t id) {
    RINGSIDE_IF_HERE(f) f->set_worker(name, id);
}

/* --- RPCs --- */
static inline ringside_call ringside_client_begin(const ringside_rpc* what) {
    ringside_call call;
    memset(&call, 0, sizeof call);
    RINGSIDE_IF_HERE(f) f->client_begin(what, &call);
    return call;
}
static inline void ringside_client_end(const ringside_call* call, uint32_t status, uint64_t bytes) {
    RINGSIDE_IF_HERE(f) f->client_end(call, status, bytes);
}
/* Serves on this thread from here on. id NULL or all zero: the caller has sent none. */
static inline ringside_call ringside_server_begin(const ringside_request* id,
                                                  const ringside_rpc* what) {
    ringside_call call;
    memset(&call, 0, sizeof call);
    RINGSIDE_IF_HERE(f) f->server_begin(id, what, &call);
    return call;
}
static inline void ringside_server_end(const ringside_call* call, uint32_t status, uint64_t bytes) {
    RINGSIDE_IF_HERE(f) f->server_end(call, status, bytes);
}
/* A request that changes threads: off on the one that leaves it, on on the one that goes on. */
static inline void ringside_serve_on(ringside_call* call) {
    RINGSIDE_IF_HERE(f) f->serve(call, 1);
}
static inline void ringside_serve_off(ringside_call* call) {
    RINGSIDE_IF_HERE(f) f->serve(call, 0);
}

/* --- the request id on the wire: W3C Trace Context, as text and as its binary draft (grpc-trace-bin) --- */
enum { RINGSIDE_TEXT_BYTES = 56, RINGSIDE_BINARY_BYTES = 29 };

static inline void ringside_put_hex_(char* out, uint64_t value) {
    int i;
    for (i = 15; i >= 0; --i, value >>= 4) out[i] = "0123456789abcdef"[value & 15];
}
static inline int ringside_hex_(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
static inline int ringside_take_hex_(const char* in, uint64_t* value) {
    int i;
    *value = 0;
    for (i = 0; i < 16; ++i) {
        const int digit = ringside_hex_(in[i]);
        if (digit < 0) return 0;
        *value = *value << 4 | (uint64_t)digit;
    }
    return 1;
}

/* Writes `00-<trace id>-<span id>-01` and a NUL.
 * @return its length, 55; 0, and an empty text, where there is nothing to send */
static inline size_t ringside_inject_text(const ringside_call* call,
                                          char out[RINGSIDE_TEXT_BYTES]) {
    out[0] = 0;
    if (call == NULL || call->id.span == 0) return 0;
    memcpy(out, "00-", 3);
    ringside_put_hex_(out + 3, call->id.trace_hi);
    ringside_put_hex_(out + 19, call->id.trace_lo);
    out[35] = '-';
    ringside_put_hex_(out + 36, call->id.span);
    memcpy(out + 52, "-01", 4);
    return 55;
}
/* @return 1; 0, and an id of zeros, where the text is none of a version that is known */
static inline int ringside_extract_text(const char* text, size_t length, ringside_request* id) {
    ringside_request found;
    memset(id, 0, sizeof *id);
    if (text == NULL || length < 55 || memcmp(text, "ff", 2) == 0 || text[2] != '-' ||
        text[35] != '-' || text[52] != '-')
        return 0;
    if (ringside_hex_(text[0]) < 0 || ringside_hex_(text[1]) < 0 || ringside_hex_(text[53]) < 0 ||
        ringside_hex_(text[54]) < 0)
        return 0;
    if (length > 55 && (memcmp(text, "00", 2) == 0 || text[55] != '-')) return 0;
    if (!ringside_take_hex_(text + 3, &found.trace_hi) ||
        !ringside_take_hex_(text + 19, &found.trace_lo) ||
        !ringside_take_hex_(text + 36, &found.span))
        return 0;
    if ((found.trace_hi | found.trace_lo) == 0 || found.span == 0) return 0;
    *id = found;
    return 1;
}

static inline void ringside_put_bytes_(uint8_t* out, uint64_t value) {
    int i;
    for (i = 7; i >= 0; --i, value >>= 8) out[i] = (uint8_t)value;
}
static inline uint64_t ringside_take_bytes_(const uint8_t* in) {
    uint64_t value = 0;
    int i;
    for (i = 0; i < 8; ++i) value = value << 8 | in[i];
    return value;
}

/* Version 0; field 0, 16 bytes of trace id; field 1, 8 bytes of span id; field 2, flags.
 * @return 29; 0 where there is nothing to send */
static inline size_t ringside_inject_binary(const ringside_call* call,
                                            uint8_t out[RINGSIDE_BINARY_BYTES]) {
    if (call == NULL || call->id.span == 0) return 0;
    out[0] = out[1] = 0;
    ringside_put_bytes_(out + 2, call->id.trace_hi);
    ringside_put_bytes_(out + 10, call->id.trace_lo);
    out[18] = 1;
    ringside_put_bytes_(out + 19, call->id.span);
    out[27] = 2;
    out[28] = 1;
    return RINGSIDE_BINARY_BYTES;
}
/* @return 1; 0, and an id of zeros, where the bytes are something else */
static inline int ringside_extract_binary(const void* bytes, size_t length, ringside_request* id) {
    const uint8_t* in = (const uint8_t*)bytes;
    ringside_request found;
    memset(id, 0, sizeof *id);
    if (in == NULL || length < 27 || in[0] != 0 || in[1] != 0 || in[18] != 1) return 0;
    found.trace_hi = ringside_take_bytes_(in + 2);
    found.trace_lo = ringside_take_bytes_(in + 10);
    found.span = ringside_take_bytes_(in + 19);
    if ((found.trace_hi | found.trace_lo) == 0 || found.span == 0) return 0;
    *id = found;
    return 1;
}

#undef RINGSIDE_IF_HERE
#undef RINGSIDE_IF_ON

#ifdef __cplusplus
}
#endif

#endif /* RINGSIDE_H */
