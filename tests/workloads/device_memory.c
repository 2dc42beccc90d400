/* A libc10_cuda.so that has no GPU: says to torch that memory of device 0 came or went, by the function and in the way of CUDA's allocator.
 * REPORT: c10::reportMemoryUsageToProfiler as the torch beside it has mangled it. */
#include <stdint.h>

void report(void* address, int64_t bytes, uint64_t allocated, uint64_t reserved,
            uint32_t device) __asm__(REPORT);

void device_memory(void* address, int64_t bytes) {
    const uint32_t cuda_0 = 1; /* c10::Device: type 1, index 0 */
    report(address, bytes, 0, 0, cuda_0);
}
