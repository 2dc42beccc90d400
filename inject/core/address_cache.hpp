// Names by where their text lies, before the look-up by what it says (name_cache.hpp): the texts of frameworks' operators, and literals, stay where they
// are, and to compare a text with the one that lay there costs half of its hash, and nothing waits for it. An entry is one cache line: the address and the
// id in one word, and the text. What has changed since is another name: it is compared to the last byte each time.
// @thread thread-safe, async-signal-safe; nobody waits
#pragma once

#include <emmintrin.h>

#include <atomic>
#include <cstdint>

#include "inject/core/intern.hpp"

namespace ringside::inject {

class AddressCache {
public:
    /// @return the id that keep() was given for this text at this address, or kNoName
    [[gnu::always_inline]] schema::NameId find(const char* text) const {
        const Entry& entry = entries_[place_of(text)];
        // SYNC(address): the text is there before its word; pairs with the release in keep().
        const std::uint64_t word = entry.word.load(std::memory_order_acquire);
        // Of the address that it is the id is left.
        const std::uint64_t found = word ^ key_of(text);
        if (found - 1 >= kIdMask) return schema::kNoName;
        // The address was kept, so that as many bytes may be read there.
        const std::uint64_t same = equal_at(text, entry.text) |
                                   equal_at(text + 16, entry.text + 16) << 16 |
                                   equal_at(text + 32, entry.text + 32) << 32;
        if ((same | entry.beyond.load(std::memory_order_relaxed)) != kAll) return schema::kNoName;
        // What was compared is that word's, if it stands there still: the writer takes it away first, and x86-64 loads in order.
        std::atomic_signal_fence(std::memory_order_acquire);
        if (entry.word.load(std::memory_order_relaxed) != word) return schema::kNoName;
        return schema::NameId{static_cast<std::uint32_t>(found)};
    }

    /// @param text  that find() does not know
    void keep(const char* text, schema::NameId id);

    /// The ids are another segment's.
    /// @thread a forked child's only one
    void clear();

private:
    static constexpr std::uint32_t kEntries = 512;
    static constexpr std::uint32_t kTextBytes = 48;  ///< with the NUL
    static constexpr std::uint64_t kAll = (std::uint64_t{1} << kTextBytes) - 1;
    static constexpr std::uint32_t kIdBits = 16;
    static constexpr std::uint64_t kIdMask = (1 << kIdBits) - 1;
    static constexpr std::uintptr_t kPage = 4096;
    static_assert(schema::kNameEntries < kIdMask);

    struct alignas(64) Entry {
        /// key_of() its address, and the id; 0: free; kBeingWritten
        std::atomic<std::uint64_t> word;
        std::atomic<std::uint64_t> beyond;  ///< a bit for each byte that does not count
        char text[kTextBytes];
    };
    static_assert(sizeof(Entry) == 64);
    /// Of no address that is kept: its id is 0.
    static constexpr std::uint64_t kBeingWritten = std::uint64_t{1} << kIdBits;

    static std::uint64_t key_of(const char* text) {
        return reinterpret_cast<std::uintptr_t>(text) << kIdBits;
    }
    static std::uint32_t place_of(const char* text) {
        return static_cast<std::uint32_t>(
            reinterpret_cast<std::uintptr_t>(text) * 0x9e3779b97f4a7c15 >> (64 - 9));
    }
    static_assert(kEntries == 1 << 9);

    /// @return a bit for each of 16 bytes that is the same
    static std::uint64_t equal_at(const char* text, const char* kept) {
        const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text));
        const __m128i b = _mm_load_si128(reinterpret_cast<const __m128i*>(kept));
        return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(a, b)));
    }

    Entry entries_[kEntries]{};
};

/// The process's.
extern constinit AddressCache g_address_cache __attribute__((visibility("hidden")));

}  // namespace ringside::inject
