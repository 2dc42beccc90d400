// Flips one bit of a dump at a time, so many times: the chunk that it is in is rejected, what stands before it is read, and the place is
// told. `dump_flips seed FILE` writes what the fuzzer over dumps starts from.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>

#include "tests/fuzz/dump_target.hpp"

using namespace ringside::tests::fuzz;

namespace {

/// @return how many of `flips` were not noticed although no padding hides them, or were told to lie elsewhere
int run_flips(int flips, unsigned seed) {
    std::vector<std::size_t> edges;
    const std::vector<std::uint8_t> whole = sample_dump(edges);
    const Loaded good = load_dump(whole);
    if (good.refused || good.damages != 0 || good.ranges == 0 || good.resumable != whole.size()) {
        static_cast<void>(std::printf("the dump itself is not read\n"));
        return 1;
    }
    std::minstd_rand random(seed);
    int wrong = 0, rejected = 0, refused = 0, hidden = 0;
    for (int i = 0; i < flips; ++i) {
        auto bytes = whole;
        const std::size_t at = random() % bytes.size();
        bytes[at] ^= static_cast<std::uint8_t>(1u << random() % 8);
        std::size_t chunk = 0;
        while (edges[chunk + 1] <= at) ++chunk;
        const Loaded loaded = load_dump(bytes);
        // The padding behind a chunk is the one place that no checksum covers.
        const bool padding = whole[at] == 0 && edges[chunk + 1] - at < 8;
        // The next agent never goes on behind a chunk that is not whole.
        if (!padding && loaded.resumable > edges[chunk]) ++wrong;
        if (loaded.refused) {
            ++refused;
            wrong += chunk == 0 ? 0 : 1;
        } else if (loaded.damages == 0) {
            ++hidden;
            wrong += padding ? 0 : 1;
        } else {
            ++rejected;
            wrong += loaded.damage_at == edges[chunk] ? 0 : 1;
        }
    }
    static_cast<void>(std::printf(
        "seed %u: %d flips of %zu bytes in %zu chunks: %d chunks rejected, %d dumps refused, %d in "
        "padding, %d wrong\n",
        seed, flips, whole.size(), edges.size() - 1, rejected, refused, hidden, wrong));
    return wrong;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::strcmp(argv[1], "seed") == 0) {
        std::vector<std::size_t> edges;
        std::ofstream file(argv[2], std::ios::binary);
        file.put(1);
        for (const std::uint8_t byte : sample_dump(edges)) file.put(static_cast<char>(byte));
        return file.good() ? 0 : 1;
    }
    const int flips = argc == 2 ? std::atoi(argv[1]) : 0;
    if (flips <= 0) {
        static_cast<void>(std::fprintf(stderr, "usage: dump_flips FLIPS | dump_flips seed FILE\n"));
        return 2;
    }
    return run_flips(flips, std::random_device{}()) == 0 ? 0 : 1;
}
