#include "inject/sources/torch/seen_payloads.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>

#include "schema/request_id.hpp"

namespace ringside::inject::torch {
namespace {

constexpr std::size_t kLongest = 512;
constexpr std::uint32_t kPlaces = 32;
constexpr std::uint32_t kPatience = 16;

// As in name_cache.hpp: words between two equal and even versions, read by load-acquire, written by store-release.
struct alignas(64) Seen {
    std::atomic<std::uint32_t> version;  ///< odd: being written
    std::atomic<std::uint32_t> size;     ///< 0: free
    std::atomic<std::uint32_t> function;
    std::atomic<std::uint32_t> module;
    std::atomic<std::uint32_t> epoch;
    std::atomic<std::uint32_t> misses;  ///< of others that wanted this place
    std::atomic<std::uint64_t> words[kLongest / 8];
};

constinit Seen g_seen[kPlaces]{};

std::uint64_t word_at(const char* payload, std::size_t size, std::size_t at) {
    std::uint64_t word = 0;
    std::memcpy(&word, payload + at, size - at < 8 ? size - at : 8);
    return word;
}

// The function's name stands at the end of a pickle, before what closes it.
Seen& place_of(const char* payload, std::size_t size) {
    std::uint64_t hash = size;
    for (std::size_t at = size > 48 ? size - 48 : 0; at < size; at += 8)
        hash = schema::mix64(hash ^ word_at(payload, size, at));
    return g_seen[hash % kPlaces];
}

bool holds(const Seen& seen, const char* payload, std::size_t size) {
    std::uint64_t difference = 0;
    std::size_t at = 0;
    for (; at + 8 <= size; at += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, payload + at, 8);
        difference |= word ^ seen.words[at / 8].load(std::memory_order_acquire);
    }
    if (at < size)
        difference |=
            word_at(payload, size, at) ^ seen.words[at / 8].load(std::memory_order_acquire);
    return difference == 0;
}

}  // namespace

bool find_seen(const char* payload, std::size_t size, std::uint32_t epoch, CalledNames* out) {
    if (size > kLongest || size == 0) return false;
    const Seen& seen = place_of(payload, size);
    // SYNC(seen): pairs with the releases in keep_seen().
    const std::uint32_t before = seen.version.load(std::memory_order_acquire);
    if (before % 2 != 0 || seen.size.load(std::memory_order_acquire) != size ||
        seen.epoch.load(std::memory_order_acquire) != epoch || !holds(seen, payload, size))
        return false;
    *out = {schema::NameId{seen.function.load(std::memory_order_acquire)},
            schema::NameId{seen.module.load(std::memory_order_acquire)}};
    return seen.version.load(std::memory_order_relaxed) == before;
}

void keep_seen(const char* payload, std::size_t size, std::uint32_t epoch,
               const CalledNames& names) {
    if (size > kLongest || size == 0) return;
    Seen& seen = place_of(payload, size);
    const bool taken = seen.size.load(std::memory_order_relaxed) != 0 &&
                       seen.epoch.load(std::memory_order_relaxed) == epoch;
    if (taken && seen.misses.fetch_add(1, std::memory_order_relaxed) % kPatience != 0) return;
    std::uint32_t version = seen.version.load(std::memory_order_relaxed);
    if (version % 2 != 0 ||
        !seen.version.compare_exchange_strong(version, version + 1, std::memory_order_acquire))
        return;  // another thread is here
    // SYNC(seen): pair with the acquires in find_seen().
    seen.size.store(static_cast<std::uint32_t>(size), std::memory_order_release);
    seen.epoch.store(epoch, std::memory_order_release);
    seen.function.store(names.function.value, std::memory_order_release);
    seen.module.store(names.module.value, std::memory_order_release);
    for (std::size_t at = 0; at < size; at += 8)
        seen.words[at / 8].store(word_at(payload, size, at), std::memory_order_release);
    seen.version.store(version + 2, std::memory_order_release);
}

}  // namespace ringside::inject::torch
