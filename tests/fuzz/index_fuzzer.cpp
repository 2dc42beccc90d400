// libFuzzer's way into a job index, beside a good dump. The first byte says whether its frames are mended, as with dumps, and whether times are corrected. With
// RINGSIDE_FUZZ_SEEDS it writes there what to start from.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "schema/frame.hpp"
#include "tests/fuzz/dump_target.hpp"

using namespace ringside;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    const char* folder = std::getenv("RINGSIDE_FUZZ_SEEDS");
    if (folder == nullptr) return 0;
    std::ofstream file(std::string(folder) + "/index", std::ios::binary);
    file.put(1);
    for (const std::uint8_t byte : tests::fuzz::sample_index()) file.put(static_cast<char>(byte));
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    std::vector<std::uint8_t> bytes(data + 1, data + size);
    if (data[0] % 8 != 0) tests::fuzz::mend_frames(bytes, schema::kJobFrameMagic);
    tests::fuzz::load_index(bytes, data[0] / 8 % 2 == 0);
    return 0;
}
