// The block codec: every kind back as it was, unknown kinds verbatim, gaps, damage.
#include "schema/block_codec.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

using namespace ringside::schema;

namespace {
using Words = std::vector<std::uint64_t>;

Words make(std::uint16_t kind, std::uint8_t cells, std::uint8_t flags, std::uint32_t name,
           std::mt19937_64& random) {
    Words words(cells * kCellWords);
    for (auto& word : words) word = random() >> (random() % 64);
    words[0] = RecordHeader{static_cast<RecordKind>(kind), cells, flags, NameId{name}}.pack();
    return words;
}

std::vector<std::uint8_t> encode(const std::vector<Words>& records, std::uint64_t base) {
    std::vector<std::uint8_t> bytes(records.size() * kMaxEncodedRecordBytes + 16);
    BlockEncoder encoder(base);
    std::uint8_t* out = bytes.data();
    for (const auto& record : records) out = encoder.record(record.data(), out);
    bytes.resize(static_cast<std::size_t>(out - bytes.data()));
    return bytes;
}
}  // namespace

TEST_CASE("codec: random records of known and unknown kinds come back word for word") {
    std::mt19937_64 random(1);
    std::vector<Words> records;
    for (int i = 0; i < 20000; ++i) {
        const auto kind =
            static_cast<std::uint16_t>(i % 3 == 0 ? 1 + random() % 70 : 1 + random() % 11);
        records.push_back(make(kind, static_cast<std::uint8_t>(1 + random() % 8),
                               static_cast<std::uint8_t>(random()),
                               static_cast<std::uint32_t>(random()), random));
    }
    const auto bytes = encode(records, 12345);
    BlockDecoder decoder(bytes.data(), bytes.size(), 12345);
    DecodedRecord record;
    for (const auto& expected : records) {
        REQUIRE(decoder.next(record));
        REQUIRE(record.cells == expected.size() / kCellWords);
        for (std::size_t i = 0; i < expected.size(); ++i) REQUIRE(record.words[i] == expected[i]);
    }
    CHECK_FALSE(decoder.next(record));
    CHECK_FALSE(decoder.damaged());
}

TEST_CASE("codec: two varints at once are the bytes of one after the other") {
    std::vector<std::uint32_t> values;
    for (std::uint32_t bit = 0; bit < 28; ++bit) {
        const std::uint32_t power = 1u << bit;
        values.insert(values.end(), {power - 1, power, power | (0x0555'5555 & (power - 1))});
    }
    values.push_back((1u << 28) - 1);
    for (const std::uint32_t first : values) {
        for (const std::uint32_t second : values) {
            std::uint8_t one[16] = {}, both[16] = {};
            const auto bytes = put_varint(put_varint(one, first), second) - one;
            REQUIRE(put_two_varints(both, first, second) - both == bytes);
            REQUIRE(std::equal(one, one + bytes, both));
        }
    }
}

TEST_CASE("codec: ranges at the edge of what is usual come back word for word") {
    std::vector<Words> records;
    std::uint64_t begin = 12345;
    for (const std::uint32_t name : {0u, 1u, 127u, 128u, 16383u, 16384u, 0xffffffffu}) {
        for (const std::int64_t step :
             {0l, 1l, -1l, (1l << 27) - 1, 1l << 27, -(1l << 27), -(1l << 27) - 1, 1l << 40}) {
            for (const std::uint64_t length :
                 {0ul, 127ul, 128ul, (1ul << 28) - 1, 1ul << 28, ~0ul}) {
                for (const std::uint64_t argument : {0ul, 7ul}) {
                    begin += static_cast<std::uint64_t>(step);
                    const auto flags =
                        record_flags(name == 1 ? SourceId::kApi : SourceId::kTorch, 0);
                    records.push_back(
                        {RecordHeader{RecordKind::kRange, 1, flags, NameId{name}}.pack(), begin,
                         begin + length, argument});
                }
            }
        }
    }
    const auto bytes = encode(records, 12345);
    BlockDecoder decoder(bytes.data(), bytes.size(), 12345);
    DecodedRecord record;
    for (const auto& expected : records) {
        REQUIRE(decoder.next(record));
        REQUIRE(std::equal(expected.begin(), expected.end(), record.words));
    }
    CHECK_FALSE(decoder.next(record));
}

TEST_CASE("codec: a kernel of a steady program takes at most 24 bytes, its call 16") {
    std::vector<Words> kernels, calls;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        const NameId name{static_cast<std::uint32_t>(i % 50)};
        const auto flags = record_flags(SourceId::kCupti, 0);
        kernels.push_back({RecordHeader{RecordKind::kGpuKernel, 3, flags, name}.pack(), i * 9000,
                           i * 9000 + 7000, i + 1, 1ull | 7ull << 32, 128 | 1ull << 32,
                           1 | 256ull << 32, 1 | 1ull << 32, 0, 40, 0, 0});
        calls.push_back({RecordHeader{RecordKind::kGpuApi, 2, flags, name}.pack(), i * 9000,
                         i * 9000 + 3000, i + 1, 4711 | 211ull << 32, 0, 0, 0});
    }
    CHECK(encode(kernels, 0).size() <= 24 * kernels.size());
    CHECK(encode(calls, 0).size() <= 16 * calls.size());
}

TEST_CASE("codec: a GPU record that a reader does not know tells its length in its first record") {
    // As a reader of before there were any decodes it: cells come from the extras, the numbers are one varint each.
    const Words device = {
        RecordHeader{RecordKind::kGpuDevice, 3, record_flags(SourceId::kCupti, 0), {}}.pack(),
        5,
        6,
        7,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0};
    const auto bytes = encode({device}, 0);
    REQUIRE(bytes.size() > 3);
    CHECK((bytes[0] & kTagExtras) != 0);
    CHECK(bytes[2] == 3);
}

TEST_CASE("codec: a range of a steady program takes at most 8 bytes") {
    std::vector<Words> records;
    for (std::uint64_t i = 0; i < 10000; ++i) {
        records.push_back({RecordHeader{RecordKind::kRange, 1, record_flags(SourceId::kTorch, 0),
                                        NameId{static_cast<std::uint32_t>(i % 200)}}
                               .pack(),
                           i * 2500, i * 2500 + 1800, 0});
    }
    CHECK(encode(records, 0).size() <= 8 * records.size());
}

TEST_CASE("codec: a gap moves the position and nothing else") {
    std::vector<std::uint8_t> bytes(16);
    bytes.resize(static_cast<std::size_t>(BlockEncoder::pad(1000, bytes.data()) - bytes.data()));
    BlockDecoder decoder(bytes.data(), bytes.size(), 0);
    DecodedRecord record;
    REQUIRE(decoder.next(record));
    CHECK(record.header().kind == RecordKind::kPad);
    CHECK(record.cells == 1000);
    CHECK_FALSE(decoder.next(record));
}

TEST_CASE(
    "codec: every cut of a block ends in the records before the cut, and never beyond the bytes") {
    std::mt19937_64 random(2);
    std::vector<Words> records;
    for (int i = 0; i < 50; ++i) records.push_back(make(5, 3, 0x10, 7, random));
    const auto bytes = encode(records, 0);
    for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
        const std::vector<std::uint8_t> part(bytes.begin(),
                                             bytes.begin() + static_cast<std::ptrdiff_t>(cut));
        BlockDecoder decoder(part.data(), part.size(), 0);
        DecodedRecord record;
        std::size_t count = 0;
        while (decoder.next(record)) {
            for (std::size_t i = 0; i < records[count].size(); ++i)
                REQUIRE(record.words[i] == records[count][i]);
            ++count;
        }
        CHECK(count < records.size());
    }
}

TEST_CASE("codec: random bytes are refused or decoded, never read beyond their end") {
    std::mt19937_64 random(3);
    for (int round = 0; round < 20000; ++round) {
        std::vector<std::uint8_t> bytes(random() % 64);
        for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
        BlockDecoder decoder(bytes.data(), bytes.size(), 0);
        DecodedRecord record;
        while (decoder.next(record)) CHECK(record.cells >= 0);
    }
}
