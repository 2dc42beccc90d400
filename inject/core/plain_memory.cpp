// The shim's own memcpy() and its like: all calls in here, the compiler's own too, end in them. A sanitizer's runtime stands in front of the
// C library's: it would check what we do to our memory, whose order it can't see (our atomics are not instrumented), and call it a race of the program's.
// Short texts and records: 16 bytes at a time are enough. In the shim alone; test programs keep theirs.
#include <emmintrin.h>

#include <cstddef>
#include <cstdint>

// None of these loops may become a call of the function that it is in.
#ifndef __clang__  // clang-tidy reads it, too
#pragma GCC optimize("no-tree-loop-distribute-patterns")
#endif

namespace {

template <class Word>
struct [[gnu::packed, gnu::may_alias]] Unaligned {
    Word value;
};

template <class Word>
Word load(const void* from) {
    return static_cast<const Unaligned<Word>*>(from)->value;
}

template <class Word>
void store(void* to, Word value) {
    static_cast<Unaligned<Word>*>(to)->value = value;
}

__m128i load16(const void* from) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
}

void store16(void* to, __m128i value) {
    _mm_storeu_si128(static_cast<__m128i*>(to), value);
}

const std::uint8_t* bytes_of(const void* memory) {
    return static_cast<const std::uint8_t*>(memory);
}

/// Ends overlap: two words cover every length from one word to two.
template <class Word>
void copy_ends(std::uint8_t* to, const std::uint8_t* from, std::size_t count) {
    const Word last = load<Word>(from + count - sizeof(Word));
    store(to, load<Word>(from));
    store(to + count - sizeof(Word), last);
}

void copy_short(std::uint8_t* to, const std::uint8_t* from, std::size_t count) {
    if (count >= 8) return copy_ends<std::uint64_t>(to, from, count);
    if (count >= 4) return copy_ends<std::uint32_t>(to, from, count);
    if (count >= 2) return copy_ends<std::uint16_t>(to, from, count);
    if (count == 1) *to = *from;
}

/// @return the first place before `end` at which `found` says so, else `end`; whole aligned blocks are read, which stay on their page
template <class Found>
const char* scan(const char* text, const char* end, Found found) {
    const auto misaligned = reinterpret_cast<std::uintptr_t>(text) & 15;
    const char* block = text - misaligned;
    if (text == end) return end;
    unsigned mask =
        found(_mm_load_si128(reinterpret_cast<const __m128i*>(block))) >> misaligned << misaligned;
    while (mask == 0) {
        block += 16;
        if (block >= end) return end;
        mask = found(_mm_load_si128(reinterpret_cast<const __m128i*>(block)));
    }
    const char* const at = block + __builtin_ctz(mask);
    return at < end ? at : end;
}

/// No text comes so far.
const char* const kNoEnd = reinterpret_cast<const char*>(~std::uintptr_t{0});

unsigned equal_bytes(__m128i left, __m128i right) {
    return static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(left, right)));
}

}  // namespace

// Hidden by the version script: an attribute is refused where the compiler has used its own declaration before.
#define RINGSIDE_OWN __attribute__((used))

extern "C" {

RINGSIDE_OWN void* memcpy(void* __restrict to, const void* __restrict from, std::size_t count) {
    auto* out = static_cast<std::uint8_t*>(to);
    const std::uint8_t* in = bytes_of(from);
    if (count < 16) {
        copy_short(out, in, count);
        return to;
    }
    for (std::size_t at = 0; at + 16 <= count; at += 16) store16(out + at, load16(in + at));
    store16(out + count - 16, load16(in + count - 16));
    return to;
}

RINGSIDE_OWN void* memmove(void* to, const void* from, std::size_t count) {
    auto* out = static_cast<std::uint8_t*>(to);
    const std::uint8_t* in = bytes_of(from);
    if (out < in) {
        for (std::size_t at = 0; at < count; ++at) out[at] = in[at];
    } else {
        for (std::size_t at = count; at-- > 0;) out[at] = in[at];
    }
    return to;
}

RINGSIDE_OWN void* memset(void* to, int value, std::size_t count) {
    auto* out = static_cast<std::uint8_t*>(to);
    const __m128i word = _mm_set1_epi8(static_cast<char>(value));
    std::size_t at = 0;
    for (; at + 16 <= count; at += 16) store16(out + at, word);
    for (; at < count; ++at) out[at] = static_cast<std::uint8_t>(value);
    return to;
}

RINGSIDE_OWN int memcmp(const void* left, const void* right, std::size_t count) {
    const std::uint8_t *a = bytes_of(left), *b = bytes_of(right);
    std::size_t at = 0;
    while (at + 16 <= count && equal_bytes(load16(a + at), load16(b + at)) == 0xffff) at += 16;
    while (at < count && a[at] == b[at]) ++at;
    return at == count ? 0 : a[at] - b[at];
}

RINGSIDE_OWN void* memchr(const void* memory, int value, std::size_t count) {
    const __m128i wanted = _mm_set1_epi8(static_cast<char>(value));
    const auto* text = static_cast<const char*>(memory);
    const char* end = count > SIZE_MAX / 2 ? kNoEnd : text + count;
    const char* at =
        scan(text, end, [wanted](__m128i block) { return equal_bytes(block, wanted); });
    return at == end ? nullptr : const_cast<char*>(at);
}

RINGSIDE_OWN std::size_t strlen(const char* text) {
    const __m128i nul = _mm_setzero_si128();
    const char* end = scan(text, kNoEnd, [nul](__m128i block) { return equal_bytes(block, nul); });
    return static_cast<std::size_t>(end - text);
}

RINGSIDE_OWN std::size_t strnlen(const char* text, std::size_t most) {
    const __m128i nul = _mm_setzero_si128();
    const char* end = most > SIZE_MAX / 2 ? kNoEnd : text + most;
    end = scan(text, end, [nul](__m128i block) { return equal_bytes(block, nul); });
    return static_cast<std::size_t>(end - text);
}

RINGSIDE_OWN int strncmp(const char* left, const char* right, std::size_t most) {
    const std::uint8_t *a = bytes_of(left), *b = bytes_of(right);
    for (std::size_t at = 0; at < most; ++at) {
        if (a[at] != b[at] || a[at] == 0) return a[at] - b[at];
    }
    return 0;
}

RINGSIDE_OWN int strcmp(const char* left, const char* right) {
    return strncmp(left, right, SIZE_MAX);
}

RINGSIDE_OWN char* strchr(const char* text, int value) {
    const __m128i nul = _mm_setzero_si128(), wanted = _mm_set1_epi8(static_cast<char>(value));
    const char* at = scan(text, kNoEnd, [nul, wanted](__m128i block) {
        return equal_bytes(block, nul) | equal_bytes(block, wanted);
    });
    return *at == static_cast<char>(value) ? const_cast<char*>(at) : nullptr;
}

RINGSIDE_OWN char* strrchr(const char* text, int value) {
    const char* found = nullptr;
    for (;; ++text) {
        if (*text == static_cast<char>(value)) found = text;
        if (*text == 0) return const_cast<char*>(found);
    }
}

RINGSIDE_OWN std::size_t strcspn(const char* text, const char* any) {
    std::size_t length = 0;
    while (text[length] != 0 && strchr(any, text[length]) == nullptr) ++length;
    return length;
}

RINGSIDE_OWN char* strstr(const char* text, const char* part) {
    const std::size_t length = strlen(part);
    for (; *text != 0; ++text) {
        if (strncmp(text, part, length) == 0) return const_cast<char*>(text);
    }
    return length == 0 ? const_cast<char*>(text) : nullptr;
}

RINGSIDE_OWN char* strncpy(char* __restrict to, const char* __restrict from, std::size_t most) {
    const std::size_t length = strnlen(from, most);
    memcpy(to, from, length);
    memset(to + length, 0, most - length);
    return to;
}

}  // extern "C"
