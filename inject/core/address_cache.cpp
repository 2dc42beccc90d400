#include "inject/core/address_cache.hpp"

#include <cstring>

#include "inject/core/start_data.hpp"

namespace ringside::inject {

constinit AddressCache g_address_cache;

namespace {

/// Texts that came and were not found, of all threads; not counted exactly. Not beside the entries: 0 tells that their pages do not exist yet.
RINGSIDE_START_DATA constinit std::atomic<std::uint32_t> strangers{0};

}  // namespace

void AddressCache::keep(const char* text, schema::NameId id) {
    if (reinterpret_cast<std::uintptr_t>(text) % kPage > kPage - kTextBytes) return;
    Entry& entry = entries_[place_of(text)];
    const std::uint32_t count = strangers.load(std::memory_order_relaxed) + 1;
    strangers.store(count, std::memory_order_relaxed);
    std::uint64_t word = entry.word.load(std::memory_order_relaxed);
    // What is there is written over now and then only: texts that are put together are never found again, and the line is in other cores' caches.
    constexpr std::uint32_t kPatience = 16;
    if (word == kBeingWritten || (word != 0 && count % kPatience != 0)) return;
    const std::size_t length = std::strlen(text);
    if (length >= kTextBytes) return;
    // Nobody takes the text for the old word's from here on.
    if (!entry.word.compare_exchange_strong(word, kBeingWritten, std::memory_order_acquire,
                                            std::memory_order_relaxed))
        return;
    std::atomic_thread_fence(std::memory_order_release);
    entry.beyond.store(kAll & ~((std::uint64_t{2} << length) - 1), std::memory_order_relaxed);
    std::memcpy(entry.text, text, length + 1);
    // SYNC(address): it is whole; pairs with the acquire in find().
    entry.word.store(key_of(text) | id.value, std::memory_order_release);
}

void AddressCache::clear() {
    if (strangers.load(std::memory_order_relaxed) == 0) return;
    for (Entry& entry : entries_) entry.word.store(0, std::memory_order_relaxed);
    strangers.store(0, std::memory_order_relaxed);
}

}  // namespace ringside::inject
