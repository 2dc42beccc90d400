#include "inject/core/name_cache.hpp"

#include "inject/core/start_data.hpp"

namespace ringside::inject {

constinit NameCache g_name_cache;

namespace {

/// Of all threads. Not beside the entries: 0 tells that their pages do not exist yet.
RINGSIDE_START_DATA constinit std::atomic<std::uint32_t> misses{0};

}  // namespace

void NameCache::keep(const char* text, std::size_t length, schema::AttributeId attribute,
                     schema::NameId id) {
    if (length >= sizeof(Entry::words)) return;
    const std::uint64_t key = key_of(text, attribute);
    Entry* const set = entries_[set_of(key)];
    // Not counted exactly: a locked instruction would wait for all that is on its way to memory.
    const std::uint32_t miss = misses.load(std::memory_order_relaxed);
    misses.store(miss + 1, std::memory_order_relaxed);
    Entry* entry = nullptr;
    for (std::uint32_t way = 0; way < kWays && entry == nullptr; ++way) {
        if (set[way].key.load(std::memory_order_relaxed) == 0) entry = &set[way];
    }
    if (entry == nullptr) {
        // Written anew now and then only: the line is in other cores' caches.
        constexpr std::uint32_t kPatience = 16;
        if (miss % kPatience != 0) return;
        entry = &set[miss / kPatience % kWays];
    }
    std::uint32_t version = entry->version.load(std::memory_order_relaxed);
    if (version % 2 != 0 ||
        !entry->version.compare_exchange_strong(version, version + 1, std::memory_order_acquire))
        return;  // another thread is here
    // SYNC(cached): pair with the acquires in find().
    entry->key.store(key, std::memory_order_release);
    entry->size.store(static_cast<std::uint16_t>(length + 1), std::memory_order_release);
    entry->id.store(static_cast<std::uint16_t>(id.value), std::memory_order_release);
    for (std::size_t at = 0; at < length + 1; at += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, text + at, length - at < 8 ? length - at : 8);
        entry->words[at / 8].store(word, std::memory_order_release);
    }
    entry->version.store(version + 2, std::memory_order_release);
}

void NameCache::clear() {
    if (misses.load(std::memory_order_relaxed) == 0)
        return;  // never used: its pages may not exist yet
    for (auto& set : entries_) {
        for (Entry& entry : set) {
            // What was never used stays untouched: most of it has no memory of its own yet.
            if (entry.version.load(std::memory_order_relaxed) == 0) continue;
            entry.key.store(0, std::memory_order_relaxed);
            entry.version.store(0, std::memory_order_relaxed);
        }
    }
    misses.store(0, std::memory_order_relaxed);
}

}  // namespace ringside::inject
