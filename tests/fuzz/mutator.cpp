// libFuzzer's way in, and a mutator that knows a script's orders: inserts, removes, repeats, swaps and splices whole ones, and puts
// numbers where they hurt. Half of the time it leaves the bytes to libFuzzer's own.
#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

#include "schema/segment.hpp"
#include "tests/fuzz/script.hpp"
#include "tests/fuzz/segment_target.hpp"

using namespace ringside::tests::fuzz;

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

std::uint64_t telling_number(std::minstd_rand& random) {
    namespace schema = ringside::schema;
    static constexpr std::uint64_t kNumbers[] = {0,
                                                 1,
                                                 2,
                                                 3,
                                                 8,
                                                 9,
                                                 16,
                                                 64,
                                                 255,
                                                 1024,
                                                 4096,
                                                 8192,
                                                 8193,
                                                 0xffff,
                                                 1 << 20,
                                                 0x7fffffff,
                                                 0xffffffff,
                                                 1ull << 63,
                                                 ~0ull,
                                                 schema::kLanesOffset,
                                                 schema::kLanesOffset + 3 * schema::kPageBytes,
                                                 schema::kNameBytes};
    switch (random() % 4) {
        case 0:
            return random();
        case 1:  // a record's first word: kind, cells, flags, name
            return random() % 34 | (random() % 10) << 16 | (random() & 0xff) << 24 |
                   std::uint64_t{random() % 9} << 32;
        case 2:
            return std::uint64_t{1} << random() % 64;
        default:
            return kNumbers[random() % std::size(kNumbers)] + random() % 3 - 1;
    }
}

void fill_order(std::uint8_t* at, std::minstd_rand& random) {
    const auto index = static_cast<std::uint16_t>(random() % 2 == 0 ? random() % 16 : random());
    const std::uint64_t value = telling_number(random);
    // Honest records and looks of the agent are what makes the rest reach far.
    static constexpr Order kOften[] = {Order::kRecord, Order::kRecord, Order::kDrain,
                                       Order::kSeal,   Order::kWord,   Order::kLater};
    at[0] = random() % 2 == 0 ? static_cast<std::uint8_t>(kOften[random() % std::size(kOften)])
                              : static_cast<std::uint8_t>(random() % kOrders);
    at[1] = static_cast<std::uint8_t>(random());
    std::memcpy(at + 2, &index, sizeof index);
    std::memcpy(at + 4, &value, sizeof value);
}

std::size_t insert(std::uint8_t* data, std::size_t size, std::size_t most, std::size_t place,
                   std::minstd_rand& random) {
    if (size + kOrderBytes > most) return size;
    std::uint8_t* at = data + kHeadBytes + place * kOrderBytes;
    std::memmove(at + kOrderBytes, at, static_cast<std::size_t>(data + size - at));
    fill_order(at, random);
    return size + kOrderBytes;
}

std::size_t mutate_orders(std::uint8_t* data, std::size_t size, std::size_t most,
                          std::minstd_rand& random) {
    const std::size_t orders = (size - kHeadBytes) / kOrderBytes;
    size = kHeadBytes + orders * kOrderBytes;
    if (orders == 0) return insert(data, size, most, 0, random);
    const std::size_t place = random() % orders;
    std::uint8_t* at = data + kHeadBytes + place * kOrderBytes;
    const std::uint64_t value = telling_number(random);
    switch (random() % 8) {
        case 0:
            data[random() % kHeadBytes] = static_cast<std::uint8_t>(random());
            return size;
        case 1:
            return insert(data, size, most, random() % (orders + 1), random);
        case 2:  // remove
            std::memmove(at, at + kOrderBytes,
                         static_cast<std::size_t>(data + size - at) - kOrderBytes);
            return size - kOrderBytes;
        case 3: {  // repeat
            const std::size_t grown = insert(data, size, most, place, random);
            if (grown != size) std::memcpy(at, at + kOrderBytes, kOrderBytes);
            return grown;
        }
        case 4:
            std::swap_ranges(at, at + kOrderBytes,
                             data + kHeadBytes + random() % orders * kOrderBytes);
            return size;
        case 5:
            std::memcpy(at + 4, &value, sizeof value);
            return size;
        case 6:
            at[random() % 4] = static_cast<std::uint8_t>(random());
            return size;
        default:
            LLVMFuzzerMutate(at, kOrderBytes, kOrderBytes);
            return size;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    run_segment_script(data, size);
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned int seed) {
    std::minstd_rand random(seed);
    if (size < kHeadBytes || random() % 8 == 0) return LLVMFuzzerMutate(data, size, most);
    for (auto times = 1 + random() % 4; times > 0; --times)
        size = mutate_orders(data, size, most, random);
    return size;
}

extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* one, std::size_t one_size,
                                                 const std::uint8_t* other, std::size_t other_size,
                                                 std::uint8_t* out, std::size_t most,
                                                 unsigned int seed) {
    std::minstd_rand random(seed);
    const auto cut = [&](std::size_t size) {
        return size < kHeadBytes
                   ? size
                   : kHeadBytes + random() % ((size - kHeadBytes) / kOrderBytes + 1) * kOrderBytes;
    };
    const std::size_t head = std::min(cut(one_size), most);
    const std::size_t from = cut(other_size);
    const std::size_t tail = std::min(other_size - from, most - head);
    std::memcpy(out, one, head);
    if (tail != 0) std::memcpy(out + head, other + from, tail);
    return head + tail;
}
