// What every range of torch needs, on one cache line: in a program's own work it is cold.
#pragma once

#include <atomic>
#include <cstdint>

#include "inject/sources/torch/calibrate.hpp"

namespace ringside::inject::torch {

struct RangeApi {
    const char* (*name)(const void* range);
    bool (*is_async)(const void* range);  ///< may be null
};

struct alignas(64) RangeAccess {
    // Written by prepare_operators(), before any callback is registered.
    RangeApi api;
    RangeOffsets offsets;
    std::atomic<std::uint32_t> words_left;  ///< counts ended_elsewhere.hpp's
};
static_assert(sizeof(RangeAccess) == 64);

extern RangeAccess g_range;

}  // namespace ringside::inject::torch
