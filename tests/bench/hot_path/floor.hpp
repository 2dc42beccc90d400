// The floor: what any tracer of ranges pays at least. Two reads of the ticks and one record of 32 bytes, published with release into a private ring that
// is as long as the lanes it stands beside; nobody asks whether there is room. And the work that ranges stand around in programs.
#pragma once

#include <sys/mman.h>
#include <x86intrin.h>

#include <atomic>
#include <cstdint>

#include "own_lanes.hpp"

namespace ringside::bench {

struct alignas(32) FloorRecord {
    std::uint64_t begin, end, name, argument;
};

class FloorRing {
public:
    explicit FloorRing(std::uint32_t records) : mask_(records - 1) {
        const std::size_t bytes = records * sizeof(FloorRecord) + schema::kPageBytes;
        void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (memory == MAP_FAILED) give_up("map the floor's ring: no memory");
        head_ = static_cast<std::atomic<std::uint64_t>*>(memory);
        records_ =
            reinterpret_cast<FloorRecord*>(static_cast<std::byte*>(memory) + schema::kPageBytes);
    }

    [[gnu::always_inline]] void begin() { records_[position_ & mask_].begin = __rdtsc(); }
    [[gnu::always_inline]] void end(std::uint64_t argument) {
        FloorRecord& record = records_[position_ & mask_];
        record.end = __rdtsc();
        record.name = 1;
        record.argument = argument;
        head_->store(++position_, std::memory_order_release);
    }

private:
    FloorRecord* records_ = nullptr;
    std::atomic<std::uint64_t>* head_ = nullptr;
    std::uint64_t position_ = 0;
    std::uint64_t mask_ = 0;
};

/// Arithmetic that waits for itself, and loads from 64 KiB: `steps` of them, about as a small operator's bookkeeping.
class Work {
public:
    [[gnu::always_inline]] void run(std::uint64_t seed, int steps) {
        std::uint64_t x = seed | 1;
        for (int k = 0; k < steps; ++k) {
            x ^= x >> 13;
            x *= 0x9e3779b97f4a7c15ull;
            x ^= table_[(x >> 20) & 8191];
        }
        sum_ += x;
    }

private:
    std::uint64_t table_[8192]{};
    std::uint64_t sum_ = 0;
};

}  // namespace ringside::bench
