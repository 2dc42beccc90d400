// Request ids: a 16-byte trace id and an 8-byte span id, the W3C's shapes. Where a wire carries one, that is used; else both ends
// derive the span id alike from what both can see. The trace id of a derived one is given at the join, from the root call.
// Called by the sources (derive), the join and the views (print). No allocation: the shim uses it in hooks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace ringside::schema {

struct TraceId {
    std::uint64_t hi = 0;
    std::uint64_t lo = 0;
    bool operator==(const TraceId&) const = default;
    constexpr bool valid() const { return (hi | lo) != 0; }
};

struct SpanId {
    std::uint64_t value = 0;
    bool operator==(const SpanId&) const = default;
    constexpr bool valid() const { return value != 0; }
};

struct RequestId {
    TraceId trace;
    SpanId span;
    bool operator==(const RequestId&) const = default;
};

/// A well-mixing 64-bit finaliser (splitmix64's).
constexpr std::uint64_t mix64(std::uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/// FNV-1a over bytes, mixed at the end. Stable for ever: two nodes with different builds must agree.
constexpr std::uint64_t hash_bytes(const char* bytes, std::size_t length,
                                   std::uint64_t seed = 0xcbf29ce484222325ull) {
    std::uint64_t hash = seed;
    for (std::size_t i = 0; i < length; ++i) {
        hash ^= static_cast<std::uint8_t>(bytes[i]);
        hash *= 0x100000001b3ull;
    }
    return mix64(hash);
}

/// The span id of a torch RPC request, the same at its caller and its callee.
/// @param source, destination  worker names, NUL-terminated
/// @param message_id           TensorPipe's own, counted from 0 by each agent of the caller: it repeats when init_rpc is called again
/// @return never 0
constexpr SpanId torch_span_id(const char* source, const char* destination,
                               std::uint64_t message_id) {
    auto length = [](const char* text) {
        std::size_t n = 0;
        while (text[n] != 0) ++n;
        return n;
    };
    std::uint64_t hash = hash_bytes(source, length(source));
    hash = hash_bytes(destination, length(destination), hash ^ 0x9e3779b97f4a7c15ull);
    hash = mix64(hash ^ mix64(message_id + 0x9e3779b97f4a7c15ull));
    return SpanId{hash == 0 ? 1 : hash};
}

/// Eight digits at a time, a byte each, the first in the highest byte: an id that goes over a wire is printed and read once a call, and digit by digit
/// that cost a third of what tracing one costs.
namespace hex {

inline constexpr std::uint64_t kEachByte = 0x0101010101010101ull;

/// `value`'s digits as numbers.
constexpr std::uint64_t spread(std::uint32_t value) {
    std::uint64_t x = value;
    x = (x << 16 | x) & 0x0000ffff0000ffffull;
    x = (x << 8 | x) & 0x00ff00ff00ff00ffull;
    return (x << 4 | x) & 0x0f0f0f0f0f0f0f0full;
}

/// ... and back.
constexpr std::uint32_t gather(std::uint64_t digits) {
    digits = (digits >> 4 | digits) & 0x00ff00ff00ff00ffull;
    digits = (digits >> 8 | digits) & 0x0000ffff0000ffffull;
    return static_cast<std::uint32_t>(digits >> 16 | digits);
}

/// Digits as lower-case text.
constexpr std::uint64_t text_of(std::uint64_t digits) {
    const std::uint64_t letters = (digits + 6 * kEachByte) >> 4 & kEachByte;
    return digits + '0' * kEachByte + ('a' - '0' - 10) * letters;
}

constexpr std::uint64_t load(const char* text) {
    std::uint64_t word = 0;
    if (std::is_constant_evaluated()) {
        for (int i = 0; i < 8; ++i) word = word << 8 | static_cast<std::uint8_t>(text[i]);
        return word;
    }
    std::memcpy(&word, text, sizeof word);
    return __builtin_bswap64(word);
}

constexpr void store(char* text, std::uint64_t word) {
    if (std::is_constant_evaluated()) {
        for (int i = 0; i < 8; ++i) text[i] = static_cast<char>(word >> (56 - 8 * i));
        return;
    }
    word = __builtin_bswap64(word);
    std::memcpy(text, &word, sizeof word);
}

}  // namespace hex

/// Writes the lowest `digits` (8 or 16) lower-case hexadecimal digits of `value`, without a NUL.
constexpr void write_hex(char* out, std::uint64_t value, std::uint32_t digits) {
    if (digits == 16) {
        hex::store(out, hex::text_of(hex::spread(static_cast<std::uint32_t>(value >> 32))));
        out += 8;
    }
    hex::store(out, hex::text_of(hex::spread(static_cast<std::uint32_t>(value))));
}

/// Reads 16 lower-case hexadecimal digits.
/// @return false, and `value` untouched, on any other character
constexpr bool read_hex16(const char* in, std::uint64_t& value) {
    std::uint32_t half[2] = {};
    bool good = true;
    for (int i = 0; i < 2; ++i) {
        const std::uint64_t text = hex::load(in + 8 * i);
        const std::uint64_t letters = text >> 6 & hex::kEachByte;
        // Whatever it is, no byte carries into the next: at most 15 + 9.
        const std::uint64_t digits =
            ((text & 15 * hex::kEachByte) + 9 * letters) & 15 * hex::kEachByte;
        // Text that is anything else is not what these digits are written as.
        good &= hex::text_of(digits) == text;
        half[i] = hex::gather(digits);
    }
    if (good) value = std::uint64_t{half[0]} << 32 | half[1];
    return good;
}

/// Reads two lower-case hexadecimal digits, likewise.
constexpr bool read_hex2(const char* in, std::uint32_t& value) {
    std::uint32_t result = 0;
    for (int i = 0; i < 2; ++i) {
        const char c = in[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
        result = result << 4 | static_cast<std::uint32_t>(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    value = result;
    return true;
}

inline constexpr std::size_t kTraceparentBytes = 55;

/// Prints `00-<32 hex>-<16 hex>-<2 hex>` and a NUL: kTraceparentBytes + 1 bytes.
constexpr void print_traceparent(const RequestId& id, bool sampled, char* out) {
    out[0] = '0', out[1] = '0', out[2] = '-', out[35] = '-', out[52] = '-';
    write_hex(out + 3, id.trace.hi, 16);
    write_hex(out + 19, id.trace.lo, 16);
    write_hex(out + 36, id.span.value, 16);
    out[53] = '0', out[54] = sampled ? '1' : '0';
    out[kTraceparentBytes] = 0;
}

/// Parses a W3C traceparent of version 00, or the version-00 prefix of a later one.
/// @return false where the text is malformed or an id is all zero
constexpr bool parse_traceparent(const char* text, std::size_t length, RequestId& id) {
    if (length < kTraceparentBytes || text[2] != '-' || text[35] != '-' || text[52] != '-')
        return false;
    std::uint32_t version = 0, flags = 0;
    RequestId result;
    if (!read_hex2(text, version) || version == 0xff ||
        (version == 0 && length != kTraceparentBytes))
        return false;
    if (length > kTraceparentBytes && text[kTraceparentBytes] != '-') return false;
    if (!read_hex16(text + 3, result.trace.hi) || !read_hex16(text + 19, result.trace.lo) ||
        !read_hex16(text + 36, result.span.value) || !read_hex2(text + 53, flags)) {
        return false;
    }
    if (!result.trace.valid() || !result.span.valid()) return false;
    id = result;
    return true;
}

}  // namespace ringside::schema
