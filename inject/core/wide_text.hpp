// Wide strings (UTF-32 here) as UTF-8, in a fixed buffer. What is no character becomes U+FFFD.
#pragma once

#include <cstddef>
#include <cstdint>

#include "schema/names.hpp"

namespace ringside::inject {

class WideText {
public:
    /// @param text  NUL-terminated; null is the empty text
    explicit WideText(const wchar_t* text) {
        for (; text != nullptr && *text != 0; ++text) {
            // NOLINTNEXTLINE(bugprone-signed-char-misuse): a wchar_t has 32 bits here
            const auto value = static_cast<std::uint32_t>(*text);
            const bool valid = value < 0x110000 && (value < 0xd800 || value > 0xdfff);
            if (!append(valid ? value : 0xfffd)) break;
        }
        bytes_[length_] = 0;
    }

    const char* c_str() const { return bytes_; }
    std::size_t length() const { return length_; }

private:
    bool append(std::uint32_t c) {
        const std::size_t count = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        if (length_ + count > schema::kMaxNameLength) return false;
        static constexpr std::uint8_t kFirst[] = {0, 0, 0xc0, 0xe0, 0xf0};
        for (std::size_t i = count - 1; i > 0; --i) {
            bytes_[length_ + i] = static_cast<char>(0x80 | (c & 0x3f));
            c >>= 6;
        }
        bytes_[length_] = static_cast<char>(kFirst[count] | c);
        length_ += count;
        return true;
    }

    std::size_t length_ = 0;
    char bytes_[schema::kMaxNameLength + 1];
};

}  // namespace ringside::inject
