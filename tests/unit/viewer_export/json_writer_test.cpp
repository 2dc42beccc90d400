// Numbers, times and strings as JSON text.
#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "viewer_export/out/json_writer.hpp"

using namespace ringside::viewer_export;

namespace {

template <class Write>
std::string written(Write&& write, std::size_t capacity = 64) {
    StringSink sink;
    {
        JsonWriter json(sink, capacity);
        write(json);
    }
    return sink.text();
}

}  // namespace

TEST_CASE("json: nanoseconds become microseconds with exactly three decimals") {
    const auto us = [](std::int64_t ns) { return written([&](JsonWriter& json) { json.us(ns); }); };
    CHECK(us(0) == "0.000");
    CHECK(us(1) == "0.001");
    CHECK(us(999) == "0.999");
    CHECK(us(1'000) == "1.000");
    CHECK(us(-1) == "-0.001");
    CHECK(us(-1'234'567) == "-1234.567");
    CHECK(us(1'700'000'000'000'000'123) == "1700000000000000.123");
    CHECK(us(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775.808");
}

TEST_CASE("json: integers of every length, limits included") {
    const auto text = [](auto number) {
        return written([&](JsonWriter& json) { json.value(number); });
    };
    std::uint64_t power = 1;
    for (int digits = 1; digits <= 19; ++digits, power *= 10) {
        CHECK(text(power) == std::to_string(power));
        CHECK(text(power - 1) == std::to_string(power - 1));
    }
    CHECK(text(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
    CHECK(text(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
}

TEST_CASE("json: strings are escaped, and bytes that are no UTF-8 replaced") {
    const auto string = [](std::string_view text) {
        return written([&](JsonWriter& json) { json.value(text); });
    };
    CHECK(string("a\"b\\c\n\x01") == "\"a\\\"b\\\\c\\n\\u0001\"");
    CHECK(string("gr\xc3\xbc\xc3\x9f \xf0\x9f\xa5\x8a") ==
          "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\xa5\x8a\"");
    CHECK(string("\xff") == "\"\xef\xbf\xbd\"");
    CHECK(string("\xc0\xaf") == "\"\xef\xbf\xbd\xef\xbf\xbd\"");      // overlong
    CHECK(string("\xed\xa0\x80").find('\xed') == std::string::npos);  // a surrogate
    CHECK(string("\xe2\x82") == "\"\xef\xbf\xbd\xef\xbf\xbd\"");      // cut off
    for (int byte = 1; byte < 256; ++byte) {
        const std::string text(3, static_cast<char>(byte));
        CHECK(nlohmann::json::accept(string(text)));
    }
}

TEST_CASE("json: commas stand between elements only, at any depth") {
    const std::string text = written([](JsonWriter& json) {
        json.begin_object();
        json.key("a");
        json.begin_array();
        json.end_array();
        json.field("b", 1);
        json.key("c");
        json.begin_array();
        json.begin_object();
        json.field("d", "x");
        json.end_object();
        json.value(true);
        json.value(2.5);
        json.value(std::numeric_limits<double>::quiet_NaN());
        json.end_array();
        json.field_us("e", 1500);
        json.end_object();
    });
    CHECK(text == R"({"a": [], "b": 1, "c": [{"d": "x"}, true, 2.5, null], "e": 1.500})");
}

TEST_CASE("json: text longer than the buffer passes through whole and in order") {
    const std::string longer(1000, 'x');
    const std::string text = written(
        [&](JsonWriter& json) {
            json.text("[");
            json.quoted(longer);
            json.text(",");
            json.number(std::uint64_t{42});
            json.text("]");
            CHECK(json.bytes() == longer.size() + 7);
        },
        16);
    CHECK(text == "[\"" + longer + "\",42]");
}
