// libFuzzer's way into the loader. The first byte says whether the frames are mended: without that every input is refused by a checksum.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/fuzz/dump_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    std::vector<std::uint8_t> bytes(data + 1, data + size);
    if (data[0] % 8 != 0) ringside::tests::fuzz::mend_frames(bytes);
    static_cast<void>(ringside::tests::fuzz::load_dump(bytes));
    return 0;
}
