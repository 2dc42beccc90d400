#include <doctest/doctest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "inject/core/name_cache.hpp"

using namespace ringside;
using inject::NameCache;
using schema::AttributeId;
using schema::kNoName;
using schema::NameId;

namespace {

void keep(NameCache& cache, const char* text, NameId id, AttributeId attribute = {}) {
    cache.keep(text, std::strlen(text), attribute, id);
}

}  // namespace

TEST_CASE("name cache: a text is found wherever it lies, while it is the same to the last byte") {
    const auto cache = std::make_unique<NameCache>();
    alignas(256) char text[256] = "aten::add";
    CHECK(cache->find(text, {}) == kNoName);
    keep(*cache, text, NameId{7});
    CHECK(cache->find(text, {}) == NameId{7});
    CHECK(cache->find(text, AttributeId{1}) == kNoName);
    const std::string copy = text;
    CHECK(cache->find(copy.c_str(), {}) == NameId{7});
    for (const char* other :
         {"aten::mul", "aten::ad", "aten::add_", "", "aten::addmm_long_name_of_more_than_a_word"}) {
        std::strcpy(text, other);
        CAPTURE(other);
        CHECK(cache->find(text, {}) == kNoName);
    }
    std::strcpy(text, "aten::add");
    std::strcpy(text + 10, "what stands behind it does not count");
    CHECK(cache->find(text, {}) == NameId{7});
    keep(*cache, text, NameId{8}, AttributeId{1});
    CHECK(cache->find(text, AttributeId{1}) == NameId{8});
    CHECK(cache->find(text, {}) == NameId{7});
}

TEST_CASE("name cache: of every length, with each byte that counts, and none that is too long") {
    std::size_t found = 0;
    for (std::size_t length = 0; length < 300; ++length) {
        CAPTURE(length);
        const auto alone = std::make_unique<NameCache>();
        std::string text(length, 'x');
        keep(*alone, text.c_str(), NameId{3});
        const NameId id = alone->find(text.c_str(), {});
        CHECK((id == kNoName || id == NameId{3}));
        found += id != kNoName;
        for (char& byte : text) {
            byte = 'y';
            CHECK(alone->find(text.c_str(), {}) == kNoName);
            byte = 'x';
        }
        CHECK(alone->find((text + "x").c_str(), {}) == kNoName);
    }
    CHECK(found == 256);
}

TEST_CASE("name cache: of 20,000 texts alike no two are taken for each other") {
    const auto cache = std::make_unique<NameCache>();
    for (std::uint32_t i = 0; i < 20000; ++i) {
        const std::string number = std::to_string(i);
        for (const std::string& text :
             {number, "layer." + number + ".weight", std::string(40, 'a') + number}) {
            CHECK(cache->find(text.c_str(), {}) == kNoName);
            keep(*cache, text.c_str(), NameId{1 + i % 8000});
        }
    }
}

TEST_CASE("name cache: nothing is read behind the page in which a text ends") {
    constexpr std::size_t kPage = 4096;
    auto* pages = static_cast<char*>(
        mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(pages != MAP_FAILED);
    REQUIRE(mprotect(pages + kPage, kPage, PROT_NONE) == 0);
    for (std::size_t length = 0; length < 120; ++length) {
        const auto cache = std::make_unique<NameCache>();
        char* text = pages + kPage - length - 1;
        std::memset(text, 'n', length);
        text[length] = 0;
        keep(*cache, text, NameId{3});
        CHECK(cache->find(text, {}) == NameId{3});
    }
    munmap(pages, 2 * kPage);
}

TEST_CASE("name cache: an address that holds many texts in turn, and more texts than places") {
    const auto cache = std::make_unique<NameCache>();
    char text[32];
    for (std::uint32_t i = 1; i < 1000; ++i) {
        std::snprintf(text, sizeof text, "name %u", i % 7);
        const NameId id = cache->find(text, {});
        CHECK((id == kNoName || id == NameId{i % 7 + 1}));
        if (id == kNoName) keep(*cache, text, NameId{i % 7 + 1});
    }
    std::vector<std::string> texts;
    for (std::uint32_t i = 0; i < 5000; ++i) texts.push_back(std::to_string(i));
    for (int round = 0; round < 3; ++round) {
        for (std::uint32_t i = 0; i < texts.size(); ++i) {
            const NameId id = cache->find(texts[i].c_str(), {});
            CHECK((id == kNoName || id == NameId{i + 1}));
            if (id == kNoName) keep(*cache, texts[i].c_str(), NameId{i + 1});
        }
    }
    cache->clear();
    for (const std::string& each : texts) CHECK(cache->find(each.c_str(), {}) == kNoName);
}

TEST_CASE("name cache: threads that keep and find at once never get another text's id") {
    const auto cache = std::make_unique<NameCache>();
    // More texts than places; each tells its id.
    std::atomic<std::uint64_t> wrong{0}, found{0};
    std::vector<std::string> texts;
    for (std::uint32_t i = 0; i < 3000; ++i)
        texts.push_back(std::string(i % 90, 'a') + std::to_string(i));
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&] {
            for (std::uint32_t i = 0; i < 300000; ++i) {
                const std::uint32_t at = i * 7919 % static_cast<std::uint32_t>(texts.size());
                const NameId id = cache->find(texts[at].c_str(), {});
                if (id == kNoName) {
                    keep(*cache, texts[at].c_str(), NameId{at + 1});
                } else {
                    ++found;
                    wrong += id != NameId{at + 1};
                }
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
    CHECK(found > 0);
}
