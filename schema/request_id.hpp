// Request ids: a 16-byte trace id and an 8-byte span id, the W3C's shapes. Where a wire carries one, that is used; else both ends
// derive the span id alike from what both can see. The trace id of a derived one is given at the join, from the root call.
// Called by the sources (derive), the join and the views (print). No allocation: the shim uses it in hooks.
#pragma once

#include <cstddef>
#include <cstdint>

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

/// Writes `digits` lower-case hexadecimal digits of `value`, without a NUL.
constexpr void write_hex(char* out, std::uint64_t value, std::uint32_t digits) {
    for (std::uint32_t i = 0; i < digits; ++i) {
        const std::uint32_t nibble =
            static_cast<std::uint32_t>(value >> (4 * (digits - 1 - i))) & 15;
        out[i] = static_cast<char>(nibble < 10 ? '0' + nibble : 'a' + nibble - 10);
    }
}

/// Reads exactly `digits` lower-case hexadecimal digits.
/// @return false, and `value` untouched, on any other character
constexpr bool read_hex(const char* in, std::uint32_t digits, std::uint64_t& value) {
    std::uint64_t result = 0;
    for (std::uint32_t i = 0; i < digits; ++i) {
        const char c = in[i];
        if (c >= '0' && c <= '9') {
            result = result << 4 | static_cast<std::uint64_t>(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            result = result << 4 | static_cast<std::uint64_t>(c - 'a' + 10);
        } else {
            return false;
        }
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
    write_hex(out + 53, sampled ? 1 : 0, 2);
    out[kTraceparentBytes] = 0;
}

/// Parses a W3C traceparent of version 00, or the version-00 prefix of a later one.
/// @return false where the text is malformed or an id is all zero
constexpr bool parse_traceparent(const char* text, std::size_t length, RequestId& id) {
    if (length < kTraceparentBytes || text[2] != '-' || text[35] != '-' || text[52] != '-')
        return false;
    std::uint64_t version = 0, flags = 0;
    RequestId result;
    if (!read_hex(text, 2, version) || version == 0xff ||
        (version == 0 && length != kTraceparentBytes))
        return false;
    if (length > kTraceparentBytes && text[kTraceparentBytes] != '-') return false;
    if (!read_hex(text + 3, 16, result.trace.hi) || !read_hex(text + 19, 16, result.trace.lo) ||
        !read_hex(text + 36, 16, result.span.value) || !read_hex(text + 53, 2, flags)) {
        return false;
    }
    if (!result.trace.valid() || !result.span.valid()) return false;
    id = result;
    return true;
}

}  // namespace ringside::schema
