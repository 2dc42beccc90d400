// The public header over the functions of a traced process: its weak look-up finds this program's own ringside_api.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "hooks.hpp"
#include "inject/sources/api/iterations.hpp"
#include "inject/sources/api/ringside.h"
#include "schema/request_id.hpp"

using namespace ringside;
using schema::RecordKind;
using test::Sandbox;
using test::SegmentView;

extern "C" const ringside_functions* ringside_api(std::uint32_t bytes);
extern "C" const ringside_functions* ringside_grpc_api(std::uint32_t bytes);

namespace {

ringside_call call_of(std::uint64_t hi, std::uint64_t lo, std::uint64_t span) {
    ringside_call call{};
    call.id = {hi, lo, span};
    return call;
}

bool same(const ringside_request& a, const ringside_request& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}

ringside_rpc rpc(const char* method) {
    ringside_rpc what{};
    what.size = sizeof what;
    what.method = method;
    return what;
}

}  // namespace

TEST_CASE("api: a request id as text is what the schema prints, and comes back") {
    const ringside_call call = call_of(0x0123456789abcdef, 2, 0xfedcba9876543210);
    char text[RINGSIDE_TEXT_BYTES];
    CHECK(ringside_inject_text(&call, text) == 55);
    char expected[schema::kTraceparentBytes + 1];
    schema::print_traceparent({{0x0123456789abcdef, 2}, {0xfedcba9876543210}}, true, expected);
    CHECK(std::string(text) == expected);
    ringside_request id;
    CHECK(ringside_extract_text(text, 55, &id) == 1);
    CHECK(same(id, call.id));
    const ringside_call none{};
    CHECK(ringside_inject_text(&none, text) == 0);
    CHECK(std::string(text).empty());
}

TEST_CASE("api: text that is no request id is refused, as the schema refuses it") {
    const std::string good = "00-0123456789abcdef0000000000000002-fedcba9876543210-01";
    std::vector<std::string> texts = {good,
                                      good + "x",
                                      good + "-x",
                                      "01" + good.substr(2),
                                      "01" + good.substr(2) + "-more",
                                      "ff" + good.substr(2),
                                      "",
                                      good.substr(0, 54),
                                      std::string(55, '0')};
    for (std::size_t i = 0; i < good.size(); ++i) {
        texts.push_back(good);
        texts.back()[i] = 'G';
    }
    for (const std::string& text : texts) {
        ringside_request id;
        schema::RequestId known;
        const bool parsed = schema::parse_traceparent(text.c_str(), text.size(), known);
        const bool extracted = ringside_extract_text(text.c_str(), text.size(), &id) == 1;
        CHECK_MESSAGE(extracted == parsed, text);
    }
}

TEST_CASE("api: a request id as bytes comes back; other bytes are refused") {
    const ringside_call call = call_of(1, 2, 3);
    std::uint8_t bytes[RINGSIDE_BINARY_BYTES];
    REQUIRE(ringside_inject_binary(&call, bytes) == 29);
    ringside_request id;
    CHECK(ringside_extract_binary(bytes, 29, &id) == 1);
    CHECK(same(id, call.id));
    CHECK(ringside_extract_binary(bytes, 26, &id) == 0);
    CHECK(same(id, ringside_request{}));
    CHECK(ringside_extract_binary(nullptr, 29, &id) == 0);
    for (const std::size_t at : {0u, 1u, 18u}) {
        std::uint8_t wrong[RINGSIDE_BINARY_BYTES];
        std::memcpy(wrong, bytes, sizeof wrong);
        wrong[at] ^= 1;
        CHECK(ringside_extract_binary(wrong, 29, &id) == 0);
    }
}

TEST_CASE("api: a table that is longer than ours is not to be had; a shorter one is") {
    Sandbox box;
    box.run([&] {
        EXPECT(ringside_api(sizeof(ringside_functions) + 8) == nullptr);
        EXPECT(ringside_api(64) != nullptr);
    });
}

TEST_CASE("api: attributes and RPCs shorter than ours are read as far as they go") {
    Sandbox box;
    box.control().source_mask.store(~0u);
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        ringside_attributes attributes{};
        attributes.size = 16;
        attributes.domain = "d";
        attributes.payload_type = RINGSIDE_SIGNED;
        attributes.payload.i = 5;
        ringside_mark_with("mark", &attributes);
        ringside_rpc what = rpc("method");
        what.size = 16;
        what.peer = "not read";
        const ringside_call call = ringside_client_begin(&what);
        ringside_client_end(&call, 99, 0);
    });
    const auto records = SegmentView(box.segment_of(pid)).records(0);
    REQUIRE(records.size() == 3);
    CHECK(records[0].words[3] == 0);
    CHECK(static_cast<std::uint32_t>(records[1].words[8]) == 0);
    // A status that is not known is an error.
    CHECK((records[2].words[3] >> 56) == 1);
}

TEST_CASE("api: servers nest: each end gives the thread back what it served before") {
    Sandbox box;
    box.control().source_mask.store(~0u);
    box.set_capture(true);
    box.run([&] {
        EXPECT(box.load());
        const ringside_rpc what = rpc("m");
        const ringside_request outer_id{1, 2, 3}, inner_id{4, 5, 6};
        const auto served = [] {
            inject::HookScope hook;
            return hook.lane().context().span.value;
        };
        const ringside_call outer = ringside_server_begin(&outer_id, &what);
        EXPECT(served() == 3);
        const ringside_call inner = ringside_server_begin(&inner_id, &what);
        EXPECT(served() == 6);
        const ringside_call asked = ringside_client_begin(&what);
        EXPECT(asked.id.trace_hi == 4 && asked.id.trace_lo == 5 && asked.id.span != 0);
        ringside_server_end(&inner, RINGSIDE_OK, 0);
        EXPECT(served() == 3);
        ringside_server_end(&outer, RINGSIDE_OK, 0);
        EXPECT(served() == 0);
        // Ended twice: nothing is served, nothing to give back.
        ringside_server_end(&outer, RINGSIDE_OK, 0);
        EXPECT(served() == 0);
        const ringside_call none = ringside_server_begin(nullptr, nullptr);
        EXPECT(none.key != 0 && none.id.span == 0);
    });
}

TEST_CASE(
    "api: halves that are told of gRPC are gRPC's, and a call keeps the id that its program gave "
    "it") {
    Sandbox box;
    box.control().source_mask.store(1u << static_cast<std::uint32_t>(schema::SourceId::kGrpc));
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        const ringside_functions* grpc = ringside_grpc_api(sizeof(ringside_functions));
        const ringside_rpc what = rpc("m");
        EXPECT(ringside_client_begin(&what).key == 0);  // the API's own are left out
        ringside_call call = call_of(1, 2, 3);
        grpc->client_begin(&what, &call);
        EXPECT(call.key != 0 && same(call.id, ringside_request{1, 2, 3}));
        grpc->client_end(&call, RINGSIDE_CANCELLED, 0);
    });
    const auto records = SegmentView(box.segment_of(pid)).records(0);
    REQUIRE(records.size() == 2);
    for (const auto& record : records)
        CHECK(schema::record_source(schema::RecordHeader::unpack(record.words[0]).flags) ==
              schema::SourceId::kGrpc);
    CHECK((records[0].words[4] == 1 && records[0].words[5] == 2 && records[0].words[6] == 3));
    CHECK((records[1].words[3] >> 56) == RINGSIDE_CANCELLED);
}

TEST_CASE("api: a thread that comes while a name's place is taken for a new capture begins at 1") {
    using inject::api::find_or_take;
    using inject::api::next_number;
    inject::api::Iterations place{};
    constexpr std::uint32_t kFirst = 5, kSecond = 9;
    constexpr std::uint64_t kName = 3;
    CHECK(find_or_take(place, std::uint64_t{kFirst} << 32 | kName));
    for (std::uint64_t i = 1; i <= 7; ++i) CHECK(next_number(place, kFirst) == i);
    // The second capture's first thread has the place, and has not counted yet.
    CHECK(find_or_take(place, std::uint64_t{kSecond} << 32 | kName));
    CHECK(find_or_take(place, std::uint64_t{kSecond} << 32 | kName));
    CHECK(next_number(place, kSecond) == 1);
    CHECK(next_number(place, kSecond) == 2);
    // Who is late takes neither the place nor a number.
    CHECK_FALSE(find_or_take(place, std::uint64_t{kFirst} << 32 | kName));
    CHECK(next_number(place, kFirst) == 0);
    CHECK(next_number(place, kSecond) == 3);
    CHECK_FALSE(find_or_take(place, std::uint64_t{kSecond} << 32 | (kName + 1)));
}

TEST_CASE("api: iterations are counted by name, and anew in each capture") {
    Sandbox box;
    box.control().source_mask.store(~0u);
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        for (const char* name : {"a", "a", "b"}) ringside_iteration(name);
        box.set_capture(false);
        ringside_iteration("a");
        box.set_capture(true);
        ringside_iteration("a");
    });
    const auto records = SegmentView(box.segment_of(pid)).records(0);
    REQUIRE(records.size() == 4);
    CHECK(records[1].words[2] == 2);
    CHECK(records[2].words[2] == 1);
    CHECK(records[3].words[2] == 1);
}

TEST_CASE("api: ranges pushed again and again, popped in any order of domains, are each recorded") {
    Sandbox box;
    box.control().source_mask.store(~0u);
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        ringside_attributes attributes{};
        attributes.size = sizeof attributes;
        attributes.domain = "d";
        for (int i = 0; i < 3; ++i) {
            ringside_range_push("outer");
            ringside_range_push_with("inner", &attributes);
            ringside_range_push("innermost");
            ringside_range_pop();
            // Not the innermost of the thread.
            ringside_range_pop();
            ringside_range_pop_of("d");
            ringside_range_pop();
        }
        // Open in a capture that ends: its pop belongs to no range of the next one.
        ringside_range_push("outer");
        box.set_capture(false);
        ringside_range_push("outer");
        box.set_capture(true);
        ringside_range_pop();
        ringside_range_push("last");
        ringside_range_pop();
        for (int i = 0; i < 70; ++i) ringside_range_push("deep");
        for (int i = 0; i < 70; ++i) ringside_range_pop();
    });
    const SegmentView view(box.segment_of(pid));
    const auto records = view.records(0);
    REQUIRE(records.size() == 10 + schema::kOpenStackDepth);
    const char* const names[] = {"innermost", "outer", "inner"};
    for (std::size_t i = 0; i < 9; ++i) {
        CHECK(records[i].name == names[i % 3]);
        CHECK(records[i].words[1] < records[i].words[2]);
    }
    CHECK(records[9].name == "last");
    CHECK(view.loss(schema::Loss::kStackTooDeep) == 70 - schema::kOpenStackDepth);
    CHECK(view.lane(0).open_depth.load() == 0);
}

TEST_CASE("api: a kept name is looked up once in each table of names") {
    Sandbox box;
    box.control().source_mask.store(~0u);
    static ringside_name kept = RINGSIDE_NAME("kept");
    static ringside_name none = RINGSIDE_NAME(nullptr);
    box.set_capture(true);
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        for (int i = 0; i < 2; ++i) {
            ringside_range_push_name(&kept);
            ringside_range_pop();
            EXPECT(kept.known != 0);
        }
        ringside_range_push_name(&none);
        ringside_range_pop();
        ringside_range_push_name(nullptr);
        ringside_range_pop();
        const std::uint64_t known = kept.known;
        // Of another table: whatever it says is not believed.
        kept.known = known + (1ull << 32) + 1;
        ringside_range_push_name(&kept);
        ringside_range_pop();
        EXPECT(kept.known == known);
    });
    const auto records = SegmentView(box.segment_of(pid)).records(0);
    const char* const names[] = {"kept", "kept", "", "", "kept"};
    REQUIRE(records.size() == std::size(names));
    for (std::size_t i = 0; i < records.size(); ++i) CHECK(records[i].name == names[i]);
}

TEST_CASE("api: off, nothing is written and nothing is there to send") {
    Sandbox box;
    const pid_t pid = box.run([&] {
        EXPECT(box.load());
        const ringside_rpc what = rpc("m");
        const ringside_call call = ringside_client_begin(&what);
        EXPECT(call.key == 0 && call.id.span == 0);
        ringside_client_end(&call, RINGSIDE_OK, 0);
        EXPECT(ringside_range_start("x") == 0 && ringside_active() == 0);
        ringside_range_push("x");
        static ringside_name kept = RINGSIDE_NAME("kept");
        ringside_range_push_name(&kept);
        EXPECT(kept.known == 0);
        ringside_set_worker("w", 1);
    });
    CHECK(SegmentView(box.segment_of(pid)).header().lanes_in_use.load() == 0);
}
