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
    schema::NameId find(const char* text, schema::AttributeId attribute) const {
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

    /// As find(), but kNoName too for texts that are long, or are another one's that the address has held: nothing here is a call or a
    /// loop, and which of the two places it is, which nobody foretells, is chosen without a branch.
    [[gnu::always_inline]] schema::NameId find_short(const char* text) const {
        const std::uint64_t key = key_of(text, {});
        const Entry* const set = entries_[set_of(key)];
        const std::uint32_t way = set[0].key.load(std::memory_order_relaxed) == key ? 0 : 1;
        return set[way].find_short(key, text);
    }

    /// @param text  interned as `id`, `length` bytes without its NUL
    void keep(const char* text, std::size_t length, schema::AttributeId attribute,
              schema::NameId id);

    /// The ids are another segment's.
    /// @thread a forked child's only one
    void clear();

private:
    // Some hundred names must each have a place: with one in five without one, as in 128 sets, those cost as much as the rest together.
    static constexpr std::uint32_t kSetBits = 9;
    static constexpr std::uint32_t kWays = 2;
    static constexpr std::size_t kWords = 14;
    static constexpr std::uintptr_t kPage = 4096;
    static constexpr std::uint32_t kFirstLineBytes = 48;
    /// Read from kFirstLineBytes - n on: n bytes that count, then those that don't.
    static constexpr char kMask[2 * kFirstLineBytes + 1] =
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
        "\xff\xff\xff\xff\xff\xff\xff\xff";

    // The first line is enough for names of up to 47 bytes. Its words are read between two equal and even versions, each by a load-acquire,
    // and written between an odd one and the next even, each by a store-release: x86-64's ordinary loads and stores.
    struct alignas(64) Entry {
        std::atomic<std::uint32_t> version;  ///< odd: being written
        std::atomic<std::uint16_t> size;     ///< of the text with its NUL
        std::atomic<std::uint16_t> id;
        std::atomic<std::uint64_t> key;            ///< 0: free
        std::atomic<std::uint64_t> words[kWords];  ///< the text, NUL-padded

        schema::NameId find(std::uint64_t wanted, const char* text) const {
            return verified(wanted, [&](std::uint32_t bytes) { return holds(text, bytes); });
        }
        [[gnu::always_inline]] schema::NameId find_short(std::uint64_t wanted,
                                                         const char* text) const {
            return verified(wanted, [&](std::uint32_t bytes) {
                return bytes <= kFirstLineBytes && !ends_page(text, kFirstLineBytes) &&
                       differs_first(text, bytes) == 0;
            });
        }

        /// @param same  whether the text is this entry's, of so many bytes
        template <class Same>
        [[gnu::always_inline]] schema::NameId verified(std::uint64_t wanted,
                                                       const Same& same) const {
            // SYNC(cached): pairs with the releases in keep().
            const std::uint32_t before = version.load(std::memory_order_acquire);
            const bool found = key.load(std::memory_order_acquire) == wanted &&
                               same(size.load(std::memory_order_acquire));
            const std::uint32_t value = id.load(std::memory_order_acquire);
            const bool whole = before % 2 == 0 && version.load(std::memory_order_relaxed) == before;
            return found && whole ? schema::NameId{value} : schema::kNoName;
        }

        // Whole words are read: never beyond the page in which the text begins, for nothing may be mapped there.
        static bool ends_page(const char* text, std::size_t bytes) {
            return reinterpret_cast<std::uintptr_t>(text) % kPage > kPage - bytes;
        }

        bool holds(const char* text, std::uint32_t bytes) const {
            const std::size_t most = bytes <= kFirstLineBytes ? kFirstLineBytes : sizeof words;
            if (bytes > sizeof words || ends_page(text, most)) return false;
            std::uint64_t difference = differs_first(text, bytes);
            asm("" : "+r"(text));  // as in there
            for (std::uint32_t at = kFirstLineBytes; at < bytes; at += 8) {
                const std::uint32_t beyond = at + 8 > bytes ? at + 8 - bytes : 0;
                difference |= difference_at(text, at) << (8 * beyond);
            }
            return difference == 0;
        }

        /// The first line's words, whatever the length: to foretell it would cost more than the masks.
        [[gnu::always_inline]] std::uint64_t differs_first(const char* text,
                                                           std::uint32_t bytes) const {
            // Of a constant the compiler would know that it ends before.
            asm("" : "+r"(text));
            const char* const mask =
                kMask + kFirstLineBytes - (bytes < kFirstLineBytes ? bytes : kFirstLineBytes);
            std::uint64_t difference = 0;
#pragma GCC unroll 8
            for (std::uint32_t at = 0; at < kFirstLineBytes; at += 8)
                difference |= difference_at(text, at) & word_at(mask + at);
            return difference;
        }

        [[gnu::always_inline]] std::uint64_t difference_at(const char* text,
                                                           std::uint32_t at) const {
            return word_at(text + at) ^ words[at / 8].load(std::memory_order_acquire);
        }

        static std::uint64_t word_at(const char* bytes) {
            std::uint64_t word = 0;
            std::memcpy(&word, bytes, sizeof word);
            return word;
        }
    };
    static_assert(sizeof(Entry) == 128 && schema::kNameEntries <= 0xffff);

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
