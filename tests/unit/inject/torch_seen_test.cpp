#include <doctest/doctest.h>

#include <string>

#include "inject/sources/torch/seen_payloads.hpp"

using ringside::inject::torch::CalledNames;
using ringside::inject::torch::find_seen;
using ringside::inject::torch::forget_seen;
using ringside::inject::torch::keep_seen;
using ringside::schema::NameId;

namespace {

bool seen(const std::string& payload, std::uint32_t function) {
    CalledNames names{};
    return find_seen(payload.data(), payload.size(), &names) &&
           names.function == NameId{function} && names.module == NameId{function + 1};
}

void keep(const std::string& payload, std::uint32_t function) {
    keep_seen(payload.data(), payload.size(), {NameId{function}, NameId{function + 1}});
}

}  // namespace

TEST_CASE("seen payloads: the same to the last byte, of every length") {
    for (std::size_t length = 1; length <= 512; ++length) {
        forget_seen();
        std::string payload(length, 'p');
        CHECK_FALSE(seen(payload, 5));
        // A place that was used before is given up once it has been missed for a while.
        for (int i = 0; i < 40 && !seen(payload, 5); ++i) keep(payload, 5);
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
    forget_seen();
}

TEST_CASE("seen payloads: none, too long, many") {
    CalledNames names{};
    keep_seen(nullptr, 0, {NameId{1}, NameId{2}});
    CHECK_FALSE(find_seen(nullptr, 0, &names));
    const std::string huge(5000, 'p');
    keep(huge, 9);
    CHECK_FALSE(seen(huge, 9));
    std::uint32_t kept = 0;
    for (std::uint32_t i = 1; i < 500; ++i) keep("payload of call " + std::to_string(i), i);
    for (std::uint32_t i = 1; i < 500; ++i) {
        const std::string payload = "payload of call " + std::to_string(i);
        if (!find_seen(payload.data(), payload.size(), &names)) continue;
        ++kept;
        CHECK(names.function == NameId{i});
    }
    CHECK(kept > 8);
    forget_seen();
    CHECK_FALSE(find_seen("payload of call 1", 17, &names));
}
