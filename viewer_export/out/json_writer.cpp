#include "viewer_export/out/json_writer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace ringside::viewer_export {

namespace {

constexpr std::size_t kLongestNumber = 32;

constexpr auto kDigits = [] {
    std::array<char, 200> digits{};
    for (std::size_t i = 0; i < 100; ++i) {
        digits[2 * i] = static_cast<char>('0' + i / 10);
        digits[2 * i + 1] = static_cast<char>('0' + i % 10);
    }
    return digits;
}();

std::size_t digits_of(std::uint64_t value) {
    std::size_t digits = 1;
    for (; value >= 10000; value /= 10000) digits += 4;
    return digits + (value >= 10) + (value >= 100) + (value >= 1000);
}

char* put_unsigned(char* out, std::uint64_t value) {
    char* const end = out + digits_of(value);
    char* at = end;
    for (; value >= 100; value /= 100) {
        at -= 2;
        std::memcpy(at, kDigits.data() + 2 * (value % 100), 2);
    }
    if (value >= 10) {
        std::memcpy(out, kDigits.data() + 2 * value, 2);
    } else {
        *out = static_cast<char>('0' + value);
    }
    return end;
}

/// The magnitude of any int64, the least one included.
std::uint64_t magnitude(std::int64_t value) {
    return value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
}

/// @return the bytes of the UTF-8 sequence at `at`, 0 where there is none (RFC 3629: shortest form, no surrogates)
std::size_t utf8_sequence(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t i) {
        return at + i < text.size() ? static_cast<std::uint8_t>(text[at + i]) : 0u;
    };
    const auto continues = [&](std::size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
    const std::uint32_t first = byte(0);
    if (first >= 0xc2 && first <= 0xdf) return continues(1) ? 2 : 0;
    if (first >= 0xe0 && first <= 0xef) {
        if (!continues(1) || !continues(2)) return 0;
        if (first == 0xe0 && byte(1) < 0xa0) return 0;
        if (first == 0xed && byte(1) > 0x9f) return 0;
        return 3;
    }
    if (first >= 0xf0 && first <= 0xf4) {
        if (!continues(1) || !continues(2) || !continues(3)) return 0;
        if (first == 0xf0 && byte(1) < 0x90) return 0;
        if (first == 0xf4 && byte(1) > 0x8f) return 0;
        return 4;
    }
    return 0;
}

void append_escape(char c, std::string& out) {
    switch (c) {
        case '"':
            out += "\\\"";
            return;
        case '\\':
            out += "\\\\";
            return;
        case '\n':
            out += "\\n";
            return;
        case '\r':
            out += "\\r";
            return;
        case '\t':
            out += "\\t";
            return;
        default:
            out += "\\u00";
            out += "0123456789abcdef"[static_cast<std::uint8_t>(c) >> 4];
            out += "0123456789abcdef"[static_cast<std::uint8_t>(c) & 15];
    }
}

}  // namespace

void append_json_escaped(std::string_view text, std::string& out) {
    for (std::size_t i = 0; i < text.size();) {
        const auto byte = static_cast<std::uint8_t>(text[i]);
        if (byte < 0x20 || byte == '"' || byte == '\\' || byte == 0x7f) {
            append_escape(text[i++], out);
        } else if (byte < 0x80) {
            out += text[i++];
        } else if (const std::size_t length = utf8_sequence(text, i); length > 0) {
            out.append(text, i, length);
            i += length;
        } else {
            out += "\xef\xbf\xbd";
            ++i;
        }
    }
}

std::string valid_utf8(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
        const bool ascii = static_cast<std::uint8_t>(text[i]) < 0x80;
        const std::size_t length = ascii ? 1 : utf8_sequence(text, i);
        out.append(length > 0 ? text.substr(i, length) : "\xef\xbf\xbd");
        i += std::max<std::size_t>(length, 1);
    }
    return out;
}

JsonWriter::JsonWriter(ByteSink& sink, std::size_t capacity)
    : sink_(sink), buffer_(new char[capacity + kLongestNumber]), capacity_(capacity) {}

void JsonWriter::flush() {
    if (used_ > 0) sink_.write(buffer_.get(), used_);
    flushed_ += used_;
    used_ = 0;
}

void JsonWriter::spill(std::string_view raw) {
    flush();
    if (raw.size() <= capacity_) return append(raw);
    sink_.write(raw.data(), raw.size());
    flushed_ += raw.size();
}

void JsonWriter::number(std::uint64_t number) {
    char* out = need(kLongestNumber);
    took(put_unsigned(out, number));
}

void JsonWriter::number(std::int64_t number) {
    char* out = need(kLongestNumber);
    if (number < 0) *out++ = '-';
    took(put_unsigned(out, magnitude(number)));
}

void JsonWriter::us(std::int64_t ns) {
    char* out = need(kLongestNumber);
    if (ns < 0) *out++ = '-';
    const std::uint64_t value = magnitude(ns);
    out = put_unsigned(out, value / 1000);
    const std::uint64_t rest = value % 1000;
    *out++ = '.';
    *out++ = static_cast<char>('0' + rest / 100);
    std::memcpy(out, kDigits.data() + 2 * (rest % 100), 2);
    took(out + 2);
}

void JsonWriter::quoted(std::string_view raw) {
    scratch_.clear();
    scratch_.push_back('"');
    append_json_escaped(raw, scratch_);
    scratch_.push_back('"');
    text(scratch_);
}

void JsonWriter::separate() {
    if (after_key_) {
        after_key_ = false;
        return;
    }
    if (!first_) text(", ");
    first_ = false;
}

void JsonWriter::open(char bracket) {
    separate();
    text({&bracket, 1});
    first_ = true;
}

void JsonWriter::close(char bracket) {
    text({&bracket, 1});
    first_ = false;
}

void JsonWriter::key(std::string_view name) {
    separate();
    quoted(name);
    // The space is part of the format: HolisticTraceAnalysis looks for `"rank": 0` with it.
    text(": ");
    after_key_ = true;
}

void JsonWriter::value(std::string_view raw) {
    separate();
    quoted(raw);
}

void JsonWriter::value(std::uint64_t content) {
    separate();
    number(content);
}

void JsonWriter::value(std::int64_t content) {
    separate();
    number(content);
}

void JsonWriter::value(double content) {
    separate();
    if (!std::isfinite(content)) return text("null");
    char out[40];
    const int length = std::snprintf(out, sizeof out, "%.17g", content);
    text({out, static_cast<std::size_t>(length)});
}

void JsonWriter::value(bool yes) {
    separate();
    text(yes ? "true" : "false");
}

void JsonWriter::null() {
    separate();
    text("null");
}

void JsonWriter::value_us(std::int64_t ns) {
    separate();
    us(ns);
}

}  // namespace ringside::viewer_export
