// Text in a fixed buffer: what std::string is for elsewhere. Appending beyond the end cuts and says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ringside::inject {

template <std::size_t kBytes>
class FixedText {
public:
    FixedText& append(const char* text) { return append(text, std::strlen(text)); }
    FixedText& append(const char* text, std::size_t length) {
        if (length >= kBytes - length_) {
            cut_ = true;
            length = kBytes - 1 - length_;
        }
        std::memcpy(bytes_ + length_, text, length);
        length_ += length;
        bytes_[length_] = 0;
        return *this;
    }
    FixedText& append_number(std::uint64_t value) {
        char digits[20];
        std::size_t at = sizeof digits;
        do {
            digits[--at] = static_cast<char>('0' + value % 10);
            value /= 10;
        } while (value != 0);
        return append(digits + at, sizeof digits - at);
    }
    /// Takes off what was appended since it was so long.
    void shorten(std::size_t length) {
        if (length >= length_) return;
        length_ = length;
        bytes_[length_] = 0;
    }
    void clear() {
        length_ = 0;
        bytes_[0] = 0;
        cut_ = false;
    }

    const char* c_str() const { return bytes_; }
    std::size_t length() const { return length_; }
    bool empty() const { return length_ == 0; }
    /// Whether something did not fit.
    bool cut() const { return cut_; }

private:
    char bytes_[kBytes] = {};
    std::size_t length_ = 0;
    bool cut_ = false;
};

inline bool starts_with(const char* text, const char* prefix) {
    return std::strncmp(text, prefix, std::strlen(prefix)) == 0;
}

/// The part behind the last slash.
inline const char* base_name(const char* path) {
    const char* slash = std::strrchr(path, '/');
    return slash != nullptr ? slash + 1 : path;
}

}  // namespace ringside::inject
