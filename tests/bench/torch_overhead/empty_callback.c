/* torch's own price of being observed: a global RecordFunction callback that does nothing, as a C module for ctypes.
   The same function types and flags as the shim's callback; see inject/sources/torch/abi.hpp. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    void *start, *end;
    double sampling_probability;
    uint8_t scopes[10], needs_inputs, needs_outputs, needs_ids;
} Callback;
_Static_assert(sizeof(Callback) == 40, "at::RecordFunctionCallback");

static void* start_nothing(void** context_out, const void* range) {
    (void)range;
    *context_out = NULL;
    return context_out;
}

static void end_nothing(const void* range, void* context) {
    (void)range;
    (void)context;
}

/* @param add_callback  at::addGlobalCallback   @return the handle for at::removeCallback */
uint64_t register_empty(uint64_t (*add_callback)(Callback)) {
    Callback callback;
    memset(&callback, 0, sizeof callback);
    callback.start = (void*)start_nothing;
    callback.end = (void*)end_nothing;
    callback.sampling_probability = 1.0;
    memset(callback.scopes, 1, sizeof callback.scopes);
    return add_callback(callback);
}
