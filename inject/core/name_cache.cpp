#include "inject/core/name_cache.hpp"

#include "inject/core/start_data.hpp"

namespace ringside::inject {

constinit NameCache g_name_cache;

namespace {

/// Of all threads. Not beside the entries: 0 tells that their pages do not exist yet.
RINGSIDE_START_DATA constinit std::atomic<std::uint32_t> misses{0};

}  // namespace

/// Of a short text the same as hash_short(), whatever lies behind it.
std::uint64_t NameCache::hash_any(const char* text, std::size_t length,
                                  schema::AttributeId attribute) {
    if (length < kShortBytes) {
        char copy[kShortBytes] = {};
        std::memcpy(copy, text, length);
        return hash_words(copy, kMask, attribute);
    }
    std::uint64_t hash = hash_words(text, kMask, attribute);
    const auto add = [&](const char* bytes) {
        hash = mix(word_at(bytes) ^ hash, word_at(bytes + 8) ^ kSalt[1]);
    };
    std::size_t at = kShortBytes;
    for (; at + 16 < length; at += 16) add(text + at);
    add(text + length - 16);  // with some of what has been
    return mix(hash ^ length, kSalt[0]);
}

schema::NameId NameCache::find_long(const char* text, schema::AttributeId attribute) const {
    const std::size_t length = std::strlen(text);
    return length < kMostBytes ? look_up(hash_any(text, length, attribute)) : schema::kNoName;
}

void NameCache::keep(const char* text, std::size_t length, schema::AttributeId attribute,
                     schema::NameId id) {
    if (length >= kMostBytes) return;
    const std::uint64_t hash = hash_any(text, length, attribute);
    std::atomic<std::uint64_t>* const set = entries_[hash % kSets];
    // Not counted exactly: a locked instruction would wait for all that is on its way to memory.
    const std::uint32_t miss = misses.load(std::memory_order_relaxed);
    misses.store(miss + 1, std::memory_order_relaxed);
    // Where both places are taken, written anew now and then only: the line is in other cores' caches.
    constexpr std::uint32_t kPatience = 16;
    std::uint32_t way = 0;
    while (way < kWays && set[way].load(std::memory_order_relaxed) != 0) ++way;
    if (way == kWays) {
        if (miss % kPatience != 0) return;
        way = miss / kPatience % kWays;
    }
    set[way].store((hash & ~kIdBits) | id.value, std::memory_order_relaxed);
}

void NameCache::clear() {
    if (misses.load(std::memory_order_relaxed) == 0)
        return;  // never used: its pages may not exist yet
    for (auto& set : entries_) {
        for (std::atomic<std::uint64_t>& entry : set) entry.store(0, std::memory_order_relaxed);
    }
    misses.store(0, std::memory_order_relaxed);
}

}  // namespace ringside::inject
