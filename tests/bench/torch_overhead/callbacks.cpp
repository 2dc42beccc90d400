// Global RecordFunction callbacks to compare with, as a module for ctypes: one that does nothing, which is torch's own price of being
// observed, and the floor, which takes the time twice and writes one record: no name, no account, no reader.
// Without torch's headers, so one for all versions. The same function types and flags as the shim's callback; see inject/sources/torch/abi.hpp.
#include <x86intrin.h>

#include <cstdint>
#include <cstring>

namespace {

/// at::RecordFunctionCallback
struct Callback {
    void* start;
    void* end;
    double sampling_probability;
    std::uint8_t scopes[10];
    std::uint8_t needs_inputs, needs_outputs, needs_ids;
};
static_assert(sizeof(Callback) == 40);

using Start = void* (*)(void** context_out, const void* range);
using End = void (*)(const void* range, void* context);

void* start_nothing(void** context_out, const void*) {
    *context_out = nullptr;
    return context_out;
}

void end_nothing(const void*, void*) {}

/// As large as an operator's in a lane, in a ring as large as a lane.
struct FloorRecord {
    std::uint64_t begin, end, range, rest[5];
};
static_assert(sizeof(FloorRecord) == 64);
constexpr std::uint64_t kRecords = (std::uint64_t{1} << 20) / sizeof(FloorRecord);
constexpr std::uint64_t kDepth = 64;

FloorRecord g_records[kRecords];
__thread std::uint64_t t_written __attribute__((tls_model("initial-exec")));
__thread std::uint64_t t_depth __attribute__((tls_model("initial-exec")));
__thread std::uint64_t t_begins[kDepth] __attribute__((tls_model("initial-exec")));

void* start_floor(void** context_out, const void*) {
    *context_out = nullptr;
    t_begins[t_depth++ % kDepth] = __rdtsc();
    return context_out;
}

void end_floor(const void* range, void*) {
    const std::uint64_t end = __rdtsc();
    const std::uint64_t begin = t_begins[--t_depth % kDepth];
    g_records[t_written++ % kRecords] = {begin, end, reinterpret_cast<std::uint64_t>(range), {}};
    asm volatile("" ::: "memory");  // the record is there to be read
}

std::uint64_t add(std::uint64_t (*add_callback)(Callback), Start start, End end) {
    Callback callback{};
    callback.start = reinterpret_cast<void*>(start);
    callback.end = reinterpret_cast<void*>(end);
    callback.sampling_probability = 1.0;
    std::memset(callback.scopes, 1, sizeof callback.scopes);
    return add_callback(callback);
}

}  // namespace

/// @param add_callback  at::addGlobalCallback
/// @return the handle for at::removeCallback
extern "C" std::uint64_t register_empty(std::uint64_t (*add_callback)(Callback)) {
    return add(add_callback, start_nothing, end_nothing);
}

/// As register_empty(). The ring's pages are real before the first record.
extern "C" std::uint64_t register_floor(std::uint64_t (*add_callback)(Callback)) {
    std::memset(g_records, 1, sizeof g_records);
    return add(add_callback, start_floor, end_floor);
}
