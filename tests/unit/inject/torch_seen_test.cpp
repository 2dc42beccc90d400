#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "inject/sources/torch/seen_payloads.hpp"

using ringside::inject::torch::CalledNames;
using ringside::inject::torch::find_seen;
using ringside::inject::torch::keep_seen;
using ringside::schema::NameId;

namespace {

std::uint32_t epoch = 1;

bool seen(const std::string& payload, std::uint32_t function) {
    CalledNames names{};
    return find_seen(payload.data(), payload.size(), epoch, &names) &&
           names.function == NameId{function} && names.module == NameId{function + 1};
}

void keep(const std::string& payload, std::uint32_t function) {
    keep_seen(payload.data(), payload.size(), epoch, {NameId{function}, NameId{function + 1}});
}

}  // namespace

TEST_CASE("seen payloads: the same to the last byte, of every length") {
    for (std::size_t length = 1; length <= 512; ++length) {
        ++epoch;
        std::string payload(length, 'p');
        CHECK_FALSE(seen(payload, 5));
        keep(payload, 5);
        CAPTURE(length);
        CHECK(seen(payload, 5));
        for (const std::size_t at : {std::size_t{0}, length / 2, length - 1}) {
            payload[at] ^= 1;
            CHECK_FALSE(seen(payload, 5));
            payload[at] ^= 1;
        }
        CHECK(seen(payload, 5));
        CHECK_FALSE(seen(payload + "p", 5));
        CHECK_FALSE(seen(payload.substr(1), 5));
    }
}

TEST_CASE("seen payloads: none, too long, many") {
    CalledNames names{};
    keep_seen(nullptr, 0, epoch, {NameId{1}, NameId{2}});
    CHECK_FALSE(find_seen(nullptr, 0, epoch, &names));
    const std::string huge(5000, 'p');
    keep(huge, 9);
    CHECK_FALSE(seen(huge, 9));
    std::uint32_t kept = 0;
    for (std::uint32_t i = 1; i < 500; ++i) keep("payload of call " + std::to_string(i), i);
    for (std::uint32_t i = 1; i < 500; ++i) {
        const std::string payload = "payload of call " + std::to_string(i);
        if (!find_seen(payload.data(), payload.size(), epoch, &names)) continue;
        ++kept;
        CHECK(names.function == NameId{i});
    }
    CHECK(kept > 8);
    // Of names that are another table's by now, none is found.
    ++epoch;
    for (std::uint32_t i = 1; i < 500; ++i)
        CHECK_FALSE(seen("payload of call " + std::to_string(i), i));
}

TEST_CASE("seen payloads: threads that keep and find at once never get another payload's names") {
    ++epoch;
    std::vector<std::string> payloads;
    for (std::uint32_t i = 0; i < 200; ++i)
        payloads.push_back(std::string(20 + i % 60, 'p') + std::to_string(i));
    std::atomic<std::uint64_t> wrong{0}, found{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&] {
            for (std::uint32_t i = 0; i < 200000; ++i) {
                const std::uint32_t at = i * 79 % static_cast<std::uint32_t>(payloads.size());
                CalledNames names{};
                if (find_seen(payloads[at].data(), payloads[at].size(), epoch, &names)) {
                    ++found;
                    wrong += names.function != NameId{at} || names.module != NameId{at + 1};
                } else {
                    keep(payloads[at], at);
                }
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
    CHECK(found > 0);
}
