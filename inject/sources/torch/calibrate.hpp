// Where RecordFunction keeps its thread, scope, sequence number and forward thread: torch versions insert fields, so the offsets are found at
// run time. Two ranges of our own are made through exported functions on a buffer of ours, with known scopes and sequence numbers, and a
// callback keeps a copy of each. A field that is not found exactly once is off and never read.
// Called by torch_source::prepare(), on a thread of our own: torch.profiler's callbacks are thread-local and must not see our ranges.
#pragma once

#include <cstddef>
#include <cstdint>

#include "inject/sources/torch/abi.hpp"
#include "inject/sources/torch/thread_state.hpp"

namespace ringside::inject::torch {

/// Byte offsets in RecordFunction; 0: unknown, the field is off.
struct RangeOffsets {
    std::uint16_t thread = 0;
    std::uint16_t scope = 0;
    std::uint16_t sequence = 0;
    std::uint16_t forward_thread = 0;
};

inline constexpr std::size_t kRangeCopyBytes =
    512;  ///< of a RecordFunction that are looked at; the whole is 288 to 344

/// What the calibration knows about its two ranges.
struct CalibrationSample {
    alignas(8) char bytes[2][kRangeCopyBytes];
    std::uint8_t scope[2];
    std::int64_t sequence[2];
    std::uint64_t thread_id;  ///< RecordFunction::currentThreadId() of the calibrating thread
};

/// Finds the offsets in a sample. Pure.
RangeOffsets find_offsets(const CalibrationSample& sample);

/// torch's functions that a calibration calls; `before_text` or `before_variant` may be null, and any of `thread_state`.
struct CalibrationApi {
    std::uint64_t (*add_callback)(RecordFunctionCallback);
    void (*remove_callback)(std::uint64_t);
    bool (*has_callbacks)();
    void (*construct)(void* range, std::uint8_t scope);
    void (*destroy)(void* range);
    std::uint64_t (*current_thread_id)();
    void (*before_text)(void* range, const char* name, std::int64_t sequence);
    void (*before_variant)(void* range, NameVariant name, std::int64_t sequence);
    ThreadStateApi thread_state;
};

/// What a calibration finds out.
struct Calibrated {
    RangeOffsets offsets;
    bool thread_state = false;  ///< ThreadCallbacks is what torch has (thread_state.hpp)
};

enum class CalibrationResult : std::uint8_t {
    kDone,      ///< `out` is filled, as far as fields were found
    kObserved,  ///< other global callbacks are registered, which would see our ranges: try again later
    kUnsupported,  ///< a function is missing, or the callback did not come
};

/// Makes the two ranges on a thread of its own and finds the offsets; that thread's callbacks are tried, too.
/// @thread one at a time; may take milliseconds
CalibrationResult calibrate(const CalibrationApi& api, Calibrated* out);

}  // namespace ringside::inject::torch
