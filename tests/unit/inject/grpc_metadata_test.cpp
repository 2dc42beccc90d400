// What is read of gRPC's metadata and methods, and the copy that carries our traceparent.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "inject/sources/grpc/metadata.hpp"
#include "inject/sources/grpc/sent_metadata.hpp"

using namespace ringside;
using namespace ringside::inject::grpc;

namespace {

constexpr char kHeader[] = "00-0123456789abcdef0123456789abcdef-fedcba9876543210-01";

/// A slice as gRPC has it: short text within, longer text elsewhere.
Slice slice(const std::string& text) {
    Slice made{};
    if (text.size() <= sizeof made.inlined.bytes) {
        made.inlined.length = static_cast<std::uint8_t>(text.size());
        text.copy(made.inlined.bytes, text.size());
    } else {
        made.count = reinterpret_cast<SliceCount*>(1);
        made.counted = {text.size(), text.c_str()};
    }
    return made;
}

Metadata entry(const std::string& key, const std::string& value) {
    return {slice(key), slice(value), {}};
}

/// Lets go as gRPC does.
void unref(const Slice& slice) {
    if (--slice.count->references == 0) slice.count->destroy(slice.count);
}

}  // namespace

TEST_CASE("grpc: a method's path is a service and a method") {
    CHECK(split_method("/package.Service/Method").service == "package.Service");
    CHECK(split_method("/package.Service/Method").method == "Method");
    CHECK(split_method("Method").service.empty());
    CHECK(split_method("Method").method == "Method");
    CHECK(split_method("").method.empty());
    CHECK(split_method("/").method.empty());
    CHECK(split_method("/a/b/c").service == "a/b");
}

TEST_CASE("grpc: the traceparent is found among other metadata, and read") {
    const std::string header = kHeader;
    const std::string binary = "a key that is longer than a slice holds within";
    const Metadata metadata[] = {entry("user", "x"), entry(binary, "y"),
                                 entry("traceparent", header)};
    const Slice* found = find_traceparent(metadata, 3);
    REQUIRE(found == &metadata[2].value);
    CHECK(read_traceparent(*found) ==
          schema::RequestId{{0x0123456789abcdef, 0x0123456789abcdef}, {0xfedcba9876543210}});
    CHECK(find_traceparent(metadata, 2) == nullptr);
    CHECK(find_traceparent(nullptr, 0) == nullptr);
    CHECK_FALSE(read_traceparent(slice("malformed")).trace.valid());
}

TEST_CASE("grpc: a status tells who gave up") {
    CHECK(status_of(0) == schema::RpcStatus::kOk);
    CHECK(status_of(1) == schema::RpcStatus::kCancelled);
    CHECK(status_of(4) == schema::RpcStatus::kTimeout);
    CHECK(status_of(5) == schema::RpcStatus::kError);
    CHECK(status_of(14) == schema::RpcStatus::kPeerGone);
    CHECK(status_of(-1) == schema::RpcStatus::kError);
}

TEST_CASE("grpc: a batch's operations are found by kind, unknown ones are passed over") {
    Op ops[3]{};
    ops[0].type = kRecvMessage;
    ops[1].type = 8;
    ops[2].type = -1;
    const Batch batch(ops, 3);
    CHECK(batch.find(kRecvMessage) == &ops[0]);
    CHECK(batch.find(kSendMessage) == nullptr);
}

TEST_CASE("grpc: our traceparent stands behind the program's own metadata") {
    const schema::RequestId id{{0x0123456789abcdef, 0x0123456789abcdef}, {0xfedcba9876543210}};
    for (const std::size_t count : {0, 1, 15}) {
        const std::vector<Metadata> own(count, entry("user", "x"));
        Metadata* copy = add_traceparent(own.data(), count, id);
        REQUIRE(copy != nullptr);
        for (std::size_t i = 0; i < count; ++i) CHECK(text_of(copy[i].key) == "user");
        CHECK(text_of(copy[count].key) == "traceparent");
        CHECK(text_of(copy[count].value) == kHeader);
        let_go(copy);
    }
    const std::vector<Metadata> many(16, entry("user", "x"));
    CHECK(add_traceparent(many.data(), many.size(), id) == nullptr);
}

TEST_CASE("grpc: a copy lives until we and gRPC have let go of it, and is used again then") {
    Metadata* first = add_traceparent(nullptr, 0, {{1, 2}, {3}});
    const Slice held = first->value;
    ++held.count->references;
    let_go(first);
    Metadata* second = add_traceparent(nullptr, 0, {{4, 5}, {6}});
    CHECK(second != first);
    CHECK(text_of(held) == "00-00000000000000010000000000000002-0000000000000003-01");
    unref(held);
    CHECK(add_traceparent(nullptr, 0, {{7, 8}, {9}}) == first);
    let_go(first);
    let_go(second);
}

TEST_CASE("grpc: when all copies are out there is none") {
    std::vector<Metadata*> copies;
    while (Metadata* copy = add_traceparent(nullptr, 0, {{1, 2}, {3}})) copies.push_back(copy);
    CHECK(copies.size() == 4096);
    for (Metadata* copy : copies) let_go(copy);
    Metadata* again = add_traceparent(nullptr, 0, {{1, 2}, {3}});
    REQUIRE(again != nullptr);
    let_go(again);
}
