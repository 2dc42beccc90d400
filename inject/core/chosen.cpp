#include "inject/core/chosen.hpp"

#include <stdlib.h>

#include <cstddef>
#include <cstring>

#include "inject/core/fixed_text.hpp"

namespace ringside::inject {

namespace {

/// Without recursion: at a mismatch the last '*' takes one character more.
bool matches(const char* pattern, const char* end, const char* text) {
    const char* star = nullptr;
    const char* star_text = nullptr;
    while (*text != 0) {
        if (pattern != end && *pattern == '*') {
            star = pattern++;
            star_text = text;
        } else if (pattern != end && (*pattern == '?' || *pattern == *text)) {
            ++pattern;
            ++text;
        } else if (star != nullptr) {
            pattern = star + 1;
            text = ++star_text;
        } else {
            return false;
        }
    }
    while (pattern != end && *pattern == '*') ++pattern;
    return pattern == end;
}

}  // namespace

bool matches_one(const char* patterns, const char* path) {
    while (*patterns != 0) {
        const std::size_t length = std::strcspn(patterns, ":,");
        const bool whole = std::memchr(patterns, '/', length) != nullptr;
        if (length != 0 && matches(patterns, patterns + length, whole ? path : base_name(path)))
            return true;
        patterns += length;
        if (*patterns != 0) ++patterns;
    }
    return false;
}

bool is_chosen(const char* executable) {
    const char* exclude = secure_getenv("RINGSIDE_EXCLUDE");
    if (exclude != nullptr && matches_one(exclude, executable)) return false;
    const char* include = secure_getenv("RINGSIDE_INCLUDE");
    return include == nullptr || *include == 0 || matches_one(include, executable);
}

}  // namespace ringside::inject
