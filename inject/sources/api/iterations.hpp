// Iterations, counted by name in the whole process, anew in each capture. Used by api.cpp.
#pragma once

#include <atomic>
#include <cstdint>

namespace ringside::inject::api {

/// A name's count. Both words bear the capture's: whoever comes first in a capture takes the place and begins to count, in two steps, and a thread that
/// comes between them must not go on with what the last capture counted.
struct Iterations {
    std::atomic<std::uint64_t> name;   ///< capture word << 32 | NameId; 0: free
    std::atomic<std::uint64_t> count;  ///< capture word << 32 | how many
};

/// Whether a capture's word is of one that was before. Generations come round: what lies half of them back is later.
inline bool is_before(std::uint32_t word, std::uint32_t other) {
    return static_cast<std::int32_t>(other - word) > 0;
}

/// @param wanted  as Iterations::name
/// @return whether the place is that name's
/// @thread thread-safe
inline bool find_or_take(Iterations& place, std::uint64_t wanted) {
    std::uint64_t present = place.name.load(std::memory_order_relaxed);
    const auto word = static_cast<std::uint32_t>(present >> 32);
    // Free, or of a capture that is over. Relaxed: each word tells of itself alone.
    if ((present == 0 || is_before(word, static_cast<std::uint32_t>(wanted >> 32))) &&
        place.name.compare_exchange_strong(present, wanted, std::memory_order_relaxed))
        return true;
    return present == wanted;
}

/// @return the next number of the capture `word`, from 1; 0: a later one counts here by now
/// @thread thread-safe
inline std::uint64_t next_number(Iterations& place, std::uint32_t word) {
    const std::uint64_t begin = static_cast<std::uint64_t>(word) << 32;
    std::uint64_t count = place.count.load(std::memory_order_relaxed);
    std::uint64_t next = 0;
    do {
        const auto counted = static_cast<std::uint32_t>(count >> 32);
        if (count != 0 && counted != word && !is_before(counted, word)) return 0;
        next = count != 0 && counted == word ? count + 1 : begin + 1;
    } while (!place.count.compare_exchange_weak(count, next, std::memory_order_relaxed));
    return next - begin;
}

}  // namespace ringside::inject::api
