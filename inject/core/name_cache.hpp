// Names interned lately, by their text. One for the process: pools pass their work around among threads, each of which would find its own cache cold.
// By a hash of the text and not by its address: frameworks build names in temporary strings, and have one name at many addresses. A name is one word of
// the cache, its hash (58 bits of it are compared) and its id, so that a thousand of them fit into the core's first cache; two texts are taken
// for each other once in 10^17 pairs.
// @thread thread-safe, async-signal-safe; nobody waits
#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>

#include "inject/core/intern.hpp"

namespace ringside::inject {

class NameCache {
public:
    /// @return the id that keep() was given for this text, or kNoName
    schema::NameId find(const char* text, schema::AttributeId attribute) const {
        std::uint64_t hash = 0;
        if (hash_short(text, attribute, hash)) [[likely]]
            return look_up(hash);
        return find_long(text, attribute);
    }

    /// @param text  interned as `id`, `length` bytes without its NUL
    void keep(const char* text, std::size_t length, schema::AttributeId attribute,
              schema::NameId id);

    /// The ids are another segment's.
    /// @thread a forked child's only one
    void clear();

private:
    // Some hundred names must each have a place: those that have none cost as much as the rest together.
    static constexpr std::uint32_t kSets = 1024;
    static constexpr std::uint32_t kWays = 2;
    static constexpr std::uint64_t kIdBits = 0xffff;
    static_assert(kSets <= kIdBits && schema::kNameEntries <= kIdBits);
    static constexpr std::uint32_t kShortBytes = 48;  ///< with the NUL
    static constexpr std::size_t kMostBytes = 256;    ///< longer texts are not kept
    static constexpr std::uintptr_t kPage = 4096;
    /// Read from kShortBytes - n on: n bytes that count, then those that don't.
    static constexpr char kMask[2 * kShortBytes + 1] =
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
        "\xff\xff\xff\xff\xff\xff\xff\xff";

    [[gnu::always_inline]] schema::NameId look_up(std::uint64_t hash) const {
        const std::atomic<std::uint64_t>* const set = entries_[hash % kSets];
        const std::uint64_t wanted = hash & ~kIdBits;
        // Of the one that is it the hash is gone, and its id is what is left. Relaxed: the word is all that there is to see.
        const std::uint64_t found = std::min(set[0].load(std::memory_order_relaxed) ^ wanted,
                                             set[1].load(std::memory_order_relaxed) ^ wanted);
        if (found - 1 < kIdBits) [[likely]]  // no id is 0
            return schema::NameId{static_cast<std::uint32_t>(found)};
        return schema::kNoName;
    }

    /// @return false: the text is a long one, or ends a page, behind which nothing may be mapped
    [[gnu::always_inline]] static bool hash_short(const char* text, schema::AttributeId attribute,
                                                  std::uint64_t& hash) {
        // Of a constant the compiler would know that it ends before.
        asm("" : "+r"(text));
        const bool fits = reinterpret_cast<std::uintptr_t>(text) % kPage <= kPage - kShortBytes;
        if (!fits) [[unlikely]]
            return false;
        const std::uint64_t ends =
            zeros_at(text) | zeros_at(text + 16) << 16 | zeros_at(text + 32) << 32;
        if (ends == 0) [[unlikely]]
            return false;
        hash = hash_words(text, kMask + kShortBytes - std::countr_zero(ends), attribute);
        return true;
    }

    /// @return a bit for each of 16 bytes that is 0
    static std::uint64_t zeros_at(const char* text) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text));
        return static_cast<std::uint32_t>(
            _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_setzero_si128())));
    }

    static std::uint64_t word_at(const char* bytes) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes, sizeof word);
        return word;
    }

    /// The two halves of a product, folded (after wyhash).
    static std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
        __extension__ using Wide = unsigned __int128;
        const Wide product = static_cast<Wide>(a) * b;
        return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    }

    /// Of kShortBytes, whatever the text's length: to foretell that would cost more.
    /// @param mask  of those that count
    [[gnu::always_inline]] static std::uint64_t hash_words(const char* text, const char* mask,
                                                           schema::AttributeId attribute) {
        const auto word = [&](std::uint32_t at) { return word_at(text + at) & word_at(mask + at); };
        // One product after the other, and the salts in memory: then no register has to be saved, which would cost as much as a product.
        const std::uint64_t* salt = kSalt;
        asm("" : "+r"(salt));
        std::uint64_t hash = mix(word(0) ^ salt[0], word(8) ^ salt[1]);
        asm("" : "+r"(hash));
        hash ^= mix(word(16) ^ salt[2], word(24) ^ salt[3]);
        asm("" : "+r"(hash));
        hash ^= mix(word(32) ^ salt[4], word(40) ^ salt[5]);
        return hash ^ attribute.value * kSalt[6];
    }

    static std::uint64_t hash_any(const char* text, std::size_t length,
                                  schema::AttributeId attribute);
    schema::NameId find_long(const char* text, schema::AttributeId attribute) const;

    alignas(64) static constexpr std::uint64_t kSalt[7] = {
        0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3, 0x589965cc75374cc3,
        0x1d8e4e27c47d124f, 0xeb44accab455d165, 0x9fb21c651e98df25};

    alignas(64) std::atomic<std::uint64_t> entries_[kSets][kWays]{};
};

/// The process's.
extern constinit NameCache g_name_cache __attribute__((visibility("hidden")));

}  // namespace ringside::inject
