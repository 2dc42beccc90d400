// WorkerInfo's layout by the shape of its name: both places, both string ABIs, short and long names.
#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "inject/sources/torch/worker_info.hpp"

namespace {

using namespace ringside::inject::torch;

// A WorkerInfo as torch lays it out: vptr, reference counts, name, id.
struct FakeInfo {
    alignas(16) char bytes[96] = {};

    FakeInfo(std::size_t name_at, std::int16_t id, std::size_t name_size) {
        put(0, 0x00007f1234567890ull);  // vptr: an address, but never looked at
        put(8, 1);
        if (name_at == 24) put(16, 1);
        std::memcpy(bytes + name_at + name_size, &id, sizeof id);
    }
    void put(std::size_t at, std::uint64_t word) { std::memcpy(bytes + at, &word, sizeof word); }
    std::string* construct_name(std::size_t at, const std::string& text) {
        return new (bytes + at) std::string(text);
    }
};

// A string of the ABI before cxx11: {length, capacity, references} and the characters.
struct OldString {
    std::uint64_t length, capacity;
    std::int64_t references;
    char text[160];

    explicit OldString(const std::string& from)
        : length(from.size()), capacity(from.size()), references(0) {
        std::memset(text, 0, sizeof text);
        std::memcpy(text, from.data(), from.size());
    }
};

void check_new(std::size_t offset, const std::string& text) {
    FakeInfo info(offset, 7, sizeof(std::string));
    std::string* const name = info.construct_name(offset, text);
    const WorkerLayout layout = find_worker_layout(info.bytes);
    CHECK(layout.name_offset == offset);
    CHECK(worker_name(info.bytes, layout) == text);
    CHECK(worker_id(info.bytes, layout) == 7);
    name->~basic_string();
}

void check_old(std::size_t offset, const std::string& text) {
    FakeInfo info(offset, 3, 8);
    const OldString name(text);
    info.put(offset, reinterpret_cast<std::uint64_t>(name.text));
    const WorkerLayout layout = find_worker_layout(info.bytes);
    CHECK(layout.name_offset == offset);
    CHECK(worker_name(info.bytes, layout) == text);
    CHECK(worker_id(info.bytes, layout) == 3);
}

TEST_CASE("worker info: the name is found in 1.13's and in 2.x's place, in both string ABIs") {
    for (const std::size_t offset : {16, 24}) {
        for (const std::string& text :
             {std::string("w"), std::string("worker1"), std::string("exactly15chars_"),
              std::string("sixteen_chars_16"), std::string("a-worker-with-a-long-name"),
              std::string(128, 'x')}) {
            check_new(offset, text);
            check_old(offset, text);
        }
    }
}

TEST_CASE("worker info: a layout that has proved wrong is skipped") {
    FakeInfo info(16, 1, sizeof(std::string));
    std::string* const name = info.construct_name(16, "worker1");
    CHECK(find_worker_layout(info.bytes, 16).name_offset == 0);
    name->~basic_string();
}

TEST_CASE("worker info: an object without a name has no layout") {
    const FakeInfo info(24, 0, 32);
    const WorkerLayout layout = find_worker_layout(info.bytes);
    CHECK(layout.name_offset == 0);
    CHECK(worker_name(info.bytes, layout).empty());
    CHECK(worker_id(info.bytes, layout) == -1);
}

}  // namespace
