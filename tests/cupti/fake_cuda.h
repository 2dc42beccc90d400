/* What the fake driver tells the fake CUPTI of, as the real ones do behind our back: each call at its begin and its end. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H
#include <stdint.h>

enum fake_work {
    FAKE_LAUNCH,
    FAKE_COPY,
    FAKE_PEER_COPY,
    FAKE_MEMSET,
    FAKE_SYNC,
    FAKE_EVENT,
    FAKE_KINDS
};

struct fake_call {
    enum fake_work what;
    int runtime;      /* through the runtime: a call of its own around the driver's */
    const char* name; /* a kernel's */
    uint32_t grid, block;
    uint64_t bytes;
    uint32_t stream;
    uint32_t value; /* memset; event */
};
typedef void (*fake_hook)(const struct fake_call* call);

#endif
