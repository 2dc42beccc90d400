// The shim's own memory functions against the C library's: all short lengths, all places in a block of 16, up to the last byte before a page
// that is not there.
#include <doctest/doctest.h>
#include <emmintrin.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

// The same source by other names: under their own they would be this whole program's.
#define memcpy plain_memcpy
#define memmove plain_memmove
#define memset plain_memset
#define memcmp plain_memcmp
#define memchr plain_memchr
#define strlen plain_strlen
#define strnlen plain_strnlen
#define strncmp plain_strncmp
#define strcmp plain_strcmp
#define strchr plain_strchr
#define strrchr plain_strrchr
#define strcspn plain_strcspn
#define strstr plain_strstr
#define strncpy plain_strncpy
#include "inject/core/plain_memory.cpp"  // NOLINT(bugprone-suspicious-include)
#undef memcpy
#undef memmove
#undef memset
#undef memcmp
#undef memchr
#undef strlen
#undef strnlen
#undef strncmp
#undef strcmp
#undef strchr
#undef strrchr
#undef strcspn
#undef strstr
#undef strncpy

namespace {

constexpr std::size_t kMost = 70;  // several blocks of 16, and what is left of one

/// A page, and none behind it nor before it.
class Page {
public:
    Page() {
        const auto size = static_cast<std::size_t>(getpagesize());
        void* memory = mmap(nullptr, 3 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(memory != MAP_FAILED);
        begin_ = static_cast<char*>(memory) + size;
        end_ = begin_ + size;
        REQUIRE(mprotect(begin_, size, PROT_READ | PROT_WRITE) == 0);
    }
    ~Page() { munmap(begin_ - (end_ - begin_), 3 * static_cast<std::size_t>(end_ - begin_)); }
    Page(const Page&) = delete;
    Page& operator=(const Page&) = delete;

    char* begin() const { return begin_; }
    char* end() const { return end_; }

private:
    char *begin_, *end_;
};

void fill(char* out, std::size_t count, unsigned seed) {
    for (std::size_t i = 0; i < count; ++i)
        out[i] = static_cast<char>(1 + (seed * 31 + i * 7) % 255);
}

int sign(int value) {
    return (value > 0) - (value < 0);
}

}  // namespace

TEST_CASE("plain memory: copies, moves and fills touch their bytes alone") {
    const Page from, to;
    char expected[3 * kMost];
    for (std::size_t count = 0; count <= kMost; ++count) {
        for (std::size_t gap = 0; gap < 17; ++gap) {
            CAPTURE(count);
            CAPTURE(gap);
            char* source = from.end() - count;
            char* target = to.begin() + gap;
            fill(source, count, static_cast<unsigned>(count));
            fill(to.begin(), sizeof expected, 99);
            std::memcpy(expected, to.begin(), sizeof expected);
            std::memcpy(expected + gap, source, count);
            CHECK(plain_memcpy(target, source, count) == target);
            CHECK(std::memcmp(to.begin(), expected, sizeof expected) == 0);
            // ... onto themselves, both ways
            std::memmove(expected + gap, expected + kMost / 2, count);
            CHECK(plain_memmove(target, to.begin() + kMost / 2, count) == target);
            CHECK(std::memcmp(to.begin(), expected, sizeof expected) == 0);
            std::memmove(expected + kMost / 2, expected + gap, count);
            plain_memmove(to.begin() + kMost / 2, target, count);
            CHECK(std::memcmp(to.begin(), expected, sizeof expected) == 0);
            std::memset(expected + gap, -3, count);
            CHECK(plain_memset(target, -3, count) == target);
            CHECK(std::memcmp(to.begin(), expected, sizeof expected) == 0);
            char* last = to.end() - count;
            plain_memcpy(last, source, count);
            CHECK(std::memcmp(last, source, count) == 0);
            plain_memset(last, 5, count);
            CHECK((count == 0 || *last == 5));
        }
    }
}

TEST_CASE("plain memory: what is looked for and compared is never looked for behind the end") {
    const Page page, other;
    for (std::size_t length = 0; length <= kMost; ++length) {
        CAPTURE(length);
        char* text = page.end() - length - 1;
        char* same = other.end() - length - 1;
        fill(text, length, static_cast<unsigned>(length));
        text[length] = 0;
        std::memcpy(same, text, length + 1);
        CHECK(plain_strlen(text) == length);
        CHECK(plain_strcmp(text, same) == 0);
        CHECK(plain_memcmp(text, same, length + 1) == 0);
        CHECK(plain_strchr(text, 0) == text + length);
        CHECK(plain_strrchr(text, 0) == text + length);
        for (std::size_t at = 0; at <= length; ++at) {
            CAPTURE(at);
            CHECK(plain_strnlen(text, at) == strnlen(text, at));
            CHECK(plain_strnlen(text + at, SIZE_MAX) == length - at);
            CHECK(plain_memchr(text, text[at], length + 1) ==
                  std::memchr(text, text[at], length + 1));
            CHECK(plain_memchr(text, text[at], at) == std::memchr(text, text[at], at));
            CHECK(plain_memchr(text, text[at], SIZE_MAX) ==
                  std::memchr(text, text[at], length + 1));
            CHECK(plain_strchr(text, text[at]) == std::strchr(text, text[at]));
            CHECK(plain_strrchr(text, text[at]) == std::strrchr(text, text[at]));
            CHECK(plain_strstr(text, text + at) == std::strstr(text, text + at));
            const char any[] = {text[at], 0};
            CHECK(plain_strcspn(text, any) == std::strcspn(text, any));
            if (at == length) continue;
            same[at] = static_cast<char>(same[at] ^ 0x55);
            if (same[at] == 0) same[at] = 1;
            CHECK(sign(plain_strcmp(text, same)) == sign(std::strcmp(text, same)));
            CHECK(sign(plain_memcmp(text, same, length)) == sign(std::memcmp(text, same, length)));
            CHECK(plain_strncmp(text, same, at) == 0);
            CHECK(sign(plain_strncmp(text, same, at + 1)) ==
                  sign(std::strncmp(text, same, at + 1)));
            same[at] = text[at];
        }
    }
}

TEST_CASE("plain memory: a bounded copy of text is filled up with NULs") {
    const Page from;
    for (std::size_t length = 0; length < 40; ++length) {
        for (std::size_t most = 0; most < 48; ++most) {
            CAPTURE(length);
            CAPTURE(most);
            char* text = from.end() - length - 1;
            fill(text, length, 3);
            text[length] = 0;
            char expected[64], out[64];
            std::memset(expected, 9, sizeof expected);
            std::memset(out, 9, sizeof out);
            std::memcpy(expected, text, length < most ? length : most);
            if (length < most) std::memset(expected + length, 0, most - length);
            plain_strncpy(out, text, most);
            CHECK(std::memcmp(out, expected, sizeof out) == 0);
        }
    }
}
