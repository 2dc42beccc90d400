#include "big_dump.hpp"

#include <string>
#include <vector>

#include "dump_maker.hpp"

namespace ringside::tests {

void make_big_dump(std::uint64_t ranges, bool operators, const std::filesystem::path& path) {
    DumpMaker dump("bench");
    dump.process(0, 4000, 0, "worker0", 0);
    constexpr std::uint32_t kLanes = 4;
    std::vector<std::string> names;
    for (int i = 0; i < 300; ++i) names.push_back("aten::operator_number_" + std::to_string(i));
    for (std::uint32_t l = 0; l < kLanes; ++l) {
        LaneMaker& lane = dump.lane(0, l, static_cast<int>(100 + l));
        std::uint64_t ticks = 1000;
        std::uint64_t random = l + 1;
        for (std::uint64_t i = 0; i < ranges / kLanes / 4; ++i) {
            random = random * 6364136223846793005ull + 1442695040888963407ull;
            const auto name = [&](int k) -> const std::string& {
                return names[(random >> (20 + 5 * k)) % 300];
            };
            const std::uint64_t begin = ticks;
            lane.range(name(0), begin + 300, begin + 900);
            lane.range(name(1), begin + 1000, begin + 2500);
            lane.range(name(2), begin + 900, begin + 2600);
            if (operators) {
                lane.op(name(3), begin, begin + 3000, static_cast<std::int64_t>(i), l + 1);
            } else {
                lane.range(name(3), begin, begin + 3000);
            }
            ticks += 3000 + (random >> 50);
            if (i % 4096 == 4095) lane.flush();
        }
    }
    dump.footer(1ull << 40);
    dump.write(path);
}

}  // namespace ringside::tests
