// Blocks for the Python reader to decode: random records of known and unknown kinds through the codec that the agent uses, one JSON
// object a line: the block's bytes in hex, its base, and the records word for word. test_codec_cross.py compares.
#include <cstdio>
#include <random>
#include <vector>

#include "schema/block_codec.hpp"

using namespace ringside::schema;

namespace {
constexpr int kBlocks = 40;
constexpr int kRecords = 50;

void print_block(std::mt19937_64& random) {
    const std::uint64_t base = random() >> (random() % 64);
    std::vector<std::uint8_t> bytes(kRecords * (kMaxEncodedRecordBytes + 11));
    BlockEncoder encoder(base);
    std::uint8_t* out = bytes.data();
    std::uint64_t position = 0;
    std::printf("{\"base\": %llu, \"records\": [", static_cast<unsigned long long>(base));
    for (int i = 0; i < kRecords; ++i) {
        if (random() % 8 == 0) {
            const std::uint64_t gap = random() % 100000;
            out = BlockEncoder::pad(gap, out);
            position += gap;
        }
        const auto kind = static_cast<std::uint16_t>(1 + random() % (random() % 3 == 0 ? 70 : 11));
        const auto cells = static_cast<std::uint8_t>(1 + random() % kMaxRecordCells);
        std::vector<std::uint64_t> words(cells * kCellWords);
        for (auto& word : words) word = random() % 4 == 0 ? 0 : random() >> (random() % 64);
        words[0] =
            RecordHeader{static_cast<RecordKind>(kind), cells, static_cast<std::uint8_t>(random()),
                         NameId{static_cast<std::uint32_t>(random())}}
                .pack();
        out = encoder.record(words.data(), out);
        std::printf("%s[%llu", i == 0 ? "" : ", ", static_cast<unsigned long long>(position));
        for (const auto word : words) std::printf(", %llu", static_cast<unsigned long long>(word));
        std::printf("]");
        position += cells;
    }
    std::printf("], \"last\": %llu, \"data\": \"", static_cast<unsigned long long>(position));
    for (const std::uint8_t* byte = bytes.data(); byte != out; ++byte) std::printf("%02x", *byte);
    std::printf("\"}\n");
}
}  // namespace

int main() {
    std::mt19937_64 random(20240607);
    for (int i = 0; i < kBlocks; ++i) print_block(random);
    return 0;
}
