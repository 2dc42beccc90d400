#include <doctest/doctest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "inject/core/address_cache.hpp"

using namespace ringside;
using inject::AddressCache;
using schema::kNoName;
using schema::NameId;

TEST_CASE("address cache: a text is found where it lay, while it is the same to the last byte") {
    const auto cache = std::make_unique<AddressCache>();
    alignas(64) char text[64] = "aten::add";
    CHECK(cache->find(text) == kNoName);
    cache->keep(text, NameId{7});
    CHECK(cache->find(text) == NameId{7});
    std::strcpy(text + 10, "what stands behind it does not count");
    CHECK(cache->find(text) == NameId{7});
    const std::string elsewhere = text;
    CHECK(cache->find(elsewhere.c_str()) == kNoName);
    for (const char* other : {"aten::mul", "aten::ad", "aten::add_", "", "aten::addmm.out"}) {
        std::strcpy(text, other);
        CAPTURE(other);
        CHECK(cache->find(text) == kNoName);
    }
    cache->clear();
    std::strcpy(text, "aten::add");
    CHECK(cache->find(text) == kNoName);
}

TEST_CASE("address cache: of every length, with each byte that counts") {
    for (std::size_t length = 0; length < 60; ++length) {
        CAPTURE(length);
        const auto cache = std::make_unique<AddressCache>();
        alignas(64) char text[64] = {};
        std::memset(text, 'x', length);
        cache->keep(text, NameId{3});
        CHECK(cache->find(text) == (length < 48 ? NameId{3} : kNoName));
        for (std::size_t at = 0; at < length; ++at) {
            text[at] = 'y';
            CHECK(cache->find(text) == kNoName);
            text[at] = 'x';
        }
        if (length >= 48) continue;
        text[length] = 'x';
        CHECK(cache->find(text) == kNoName);
    }
}

TEST_CASE("address cache: nothing is read behind the page in which a text ends") {
    constexpr std::size_t kPage = 4096;
    auto* pages = static_cast<char*>(
        mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(pages != MAP_FAILED);
    REQUIRE(mprotect(pages + kPage, kPage, PROT_NONE) == 0);
    for (std::size_t length = 0; length < 80; ++length) {
        const auto cache = std::make_unique<AddressCache>();
        char* text = pages + kPage - length - 1;
        std::memset(text, 'n', length);
        text[length] = 0;
        cache->keep(text, NameId{3});
        CHECK(cache->find(text) == (length == 47 ? NameId{3} : kNoName));
    }
    munmap(pages, 2 * kPage);
}

TEST_CASE(
    "address cache: more texts than places, each its own or none, and the last ones come in") {
    const auto cache = std::make_unique<AddressCache>();
    std::vector<std::string> texts;
    for (std::uint32_t i = 0; i < 4000; ++i) texts.push_back("text number " + std::to_string(i));
    std::uint32_t late = 0;
    for (std::uint32_t i = 0; i < texts.size(); ++i) {
        const NameId id{1 + i};
        CHECK(cache->find(texts[i].c_str()) == kNoName);
        cache->keep(texts[i].c_str(), id);
        const NameId found = cache->find(texts[i].c_str());
        CHECK((found == kNoName || found == id));
        if (i >= 3000) late += found == id;
    }
    CHECK(late > 20);
}

TEST_CASE(
    "address cache: a text that has changed never has its old name, whoever writes its entry") {
    const auto cache = std::make_unique<AddressCache>();
    const NameId old_id{1}, new_id{2};
    const auto keep_surely = [&](const char* text, NameId id) {
        for (int i = 0; i < 64 && cache->find(text) != id; ++i) cache->keep(text, id);
        return cache->find(text) == id;
    };
    // Two addresses of one entry: what is kept for the second takes the first one's place.
    std::vector<char> memory(1 << 20);
    char* const text = memory.data() + 64;
    std::strcpy(text, "old");
    REQUIRE(keep_surely(text, old_id));
    char* other = text;
    do {
        other += 64;
        REQUIRE(other + 64 < memory.data() + memory.size());
        std::strcpy(other, "new");
        static_cast<void>(keep_surely(other, new_id));
    } while (cache->find(text) == old_id);
    std::atomic<bool> stop{false};
    std::thread writer([&] {
        while (!stop.load(std::memory_order_relaxed)) cache->keep(other, new_id);
    });
    std::uint64_t wrong = 0, kept = 0;
    for (int round = 0; round < 300'000; ++round) {
        std::strcpy(text, "old");
        cache->keep(text, old_id);
        kept += cache->find(text) == old_id;
        std::strcpy(text, "new");
        wrong += cache->find(text) == old_id;
    }
    stop = true;
    writer.join();
    CHECK(kept > 0);
    CHECK(wrong == 0);
}
