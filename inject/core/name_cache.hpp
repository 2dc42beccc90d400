// Names interned lately, by the address of their text, with the text itself: a hit touches one or two cache lines. One for the process:
// pools pass their work around among threads, each of which would find its own cache cold.
// A hit is verified against the text: frameworks build names in temporary strings, so one address holds many texts in turn. Two of them have room.
// @thread thread-safe, async-signal-safe; nobody waits
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "inject/core/intern.hpp"

namespace ringside::inject {

class NameCache {
public:
    /// @return the id that keep() was given for this text at this address, or kNoName
    [[gnu::always_inline]] schema::NameId find(const char* text,
                                               schema::AttributeId attribute) const {
        const std::uint64_t key = key_of(text, attribute);
        const Entry* const set = entries_[set_of(key)];
        for (std::uint32_t way = 0; way < kWays; ++way) {
            if (set[way].key.load(std::memory_order_relaxed) != key) continue;
            const schema::NameId found = set[way].find(key, text);
            if (found != schema::kNoName) [[likely]]
                return found;
        }
        return schema::kNoName;
    }

    /// @param text  interned as `id`, `length` bytes without its NUL
    void keep(const char* text, std::size_t length, schema::AttributeId attribute,
              schema::NameId id);

    /// The ids are another segment's.
    /// @thread a forked child's only one
    void clear();

private:
    static constexpr std::uint32_t kSetBits = 7;
    static constexpr std::uint32_t kWays = 2;
    static constexpr std::size_t kWords = 13;
    static constexpr std::uintptr_t kPage = 4096;

    // The first line is enough for names of up to 39 bytes. Its words are read between two equal and even versions, each by a load-acquire,
    // and written between an odd one and the next even, each by a store-release: x86-64's ordinary loads and stores.
    struct alignas(64) Entry {
        std::atomic<std::uint32_t> version;  ///< odd: being written
        std::atomic<std::uint32_t> size;     ///< of the text with its NUL
        std::atomic<std::uint64_t> key;      ///< 0: free
        std::atomic<std::uint64_t> id;
        std::atomic<std::uint64_t> words[kWords];  ///< the text, NUL-padded

        [[gnu::always_inline]] schema::NameId find(std::uint64_t wanted, const char* text) const {
            // SYNC(cached): pairs with the releases in keep().
            const std::uint32_t before = version.load(std::memory_order_acquire);
            const bool same = key.load(std::memory_order_acquire) == wanted &&
                              holds(text, size.load(std::memory_order_acquire));
            const std::uint64_t found = id.load(std::memory_order_acquire);
            const bool whole = before % 2 == 0 && version.load(std::memory_order_relaxed) == before;
            return same && whole ? schema::NameId{static_cast<std::uint32_t>(found)}
                                 : schema::kNoName;
        }

        // Whole words are read: never beyond the page in which the text begins, for nothing may be mapped there.
        bool holds(const char* text, std::uint32_t bytes) const {
            if (bytes > sizeof words ||
                reinterpret_cast<std::uintptr_t>(text) % kPage > kPage - sizeof words)
                return false;
            std::uint64_t difference = 0;
            std::uint32_t at = 0;
            for (; at + 8 <= bytes; at += 8) difference |= difference_at(text, at);
            if (at < bytes) difference |= difference_at(text, at) << (64 - 8 * (bytes - at));
            return difference == 0;
        }

        std::uint64_t difference_at(const char* text, std::uint32_t at) const {
            std::uint64_t word = 0;
            std::memcpy(&word, text + at, sizeof word);
            return word ^ words[at / 8].load(std::memory_order_acquire);
        }
    };
    static_assert(sizeof(Entry) == 128);

    static std::uint64_t key_of(const char* text, schema::AttributeId attribute) {
        return reinterpret_cast<std::uintptr_t>(text) | std::uint64_t{attribute.value} << 48;
    }
    static std::uint32_t set_of(std::uint64_t key) {
        return static_cast<std::uint32_t>((key * 0x9e3779b97f4a7c15ull) >> (64 - kSetBits));
    }

    Entry entries_[1u << kSetBits][kWays]{};
};

/// The process's.
extern constinit NameCache g_name_cache;

}  // namespace ringside::inject
