// Request ids: both ends derive alike; traceparent as the W3C writes it.
#include "schema/request_id.hpp"

#include <doctest/doctest.h>

#include <string_view>

using namespace ringside::schema;

TEST_CASE("span id: equal for equal inputs, different when the direction is swapped") {
    const SpanId there = torch_span_id("worker0", "worker1", 7);
    CHECK(there == torch_span_id("worker0", "worker1", 7));
    CHECK(there != torch_span_id("worker1", "worker0", 7));
    CHECK(there != torch_span_id("worker0", "worker1", 8));
    CHECK(there.valid());
}

TEST_CASE("span id: a name's end is not the other's begin") {
    CHECK(torch_span_id("ab", "c", 1) != torch_span_id("a", "bc", 1));
}

TEST_CASE("traceparent: what is printed parses to the same ids") {
    const RequestId id{{0x0af7651916cd43dd, 0x8448eb211c80319c}, {0xb7ad6b7169203331}};
    char text[kTraceparentBytes + 1];
    print_traceparent(id, true, text);
    CHECK(std::string_view(text) == "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    RequestId parsed;
    REQUIRE(parse_traceparent(text, kTraceparentBytes, parsed));
    CHECK(parsed == id);
}

TEST_CASE("traceparent: malformed, all-zero and version ff are refused") {
    RequestId id;
    for (const std::string_view bad :
         {"", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
          "00-00000000000000000000000000000000-b7ad6b7169203331-01",
          "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
          "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
          "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
          "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x"}) {
        CHECK_FALSE(parse_traceparent(bad.data(), bad.size(), id));
    }
    const std::string_view later = "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more";
    CHECK(parse_traceparent(later.data(), later.size(), id));
}
