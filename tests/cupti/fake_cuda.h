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
    struct fake_shape {
        uint32_t device;
        uint32_t after, length; /* of the work: ticks from the call to its begin, to its end */
    } shape;
};
typedef void (*fake_hook)(const struct fake_call* call);

#endif
