// The committed corpus, input by input, without a fuzzer: what any compiler can build, and quick enough for every run. A check that does
// not hold aborts and has said which input it was.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/fuzz/segment_target.hpp"

namespace {

int digit(char letter) {
    const auto at = std::string("0123456789abcdef").find(letter);
    return at == std::string::npos ? -1 : static_cast<int>(at);
}

/// @return whether the line is an input: pairs of hexadecimal digits
bool parse(const std::string& line, std::vector<std::uint8_t>& input) {
    input.clear();
    if (line.size() % 2 != 0) return false;
    for (std::size_t i = 0; i < line.size(); i += 2) {
        const int high = digit(line[i]), low = digit(line[i + 1]);
        if (high < 0 || low < 0) return false;
        input.push_back(static_cast<std::uint8_t>(high << 4 | low));
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        static_cast<void>(std::fprintf(stderr, "usage: replay CORPUS\n"));
        return 2;
    }
    std::ifstream file(argv[1]);
    std::string line;
    std::vector<std::uint8_t> input;
    int number = 0, inputs = 0;
    while (std::getline(file, line)) {
        ++number;
        if (line.empty() || line[0] == '#') continue;
        if (!parse(line, input)) {
            static_cast<void>(std::fprintf(stderr, "%s:%d: not an input\n", argv[1], number));
            return 1;
        }
        // Said beforehand and unbuffered: where it aborts, this is the last line.
        static_cast<void>(std::fprintf(stderr, "%d ", number));
        ringside::tests::fuzz::run_segment_script(input.data(), input.size());
        ++inputs;
    }
    static_cast<void>(std::fprintf(stderr, "\n%d inputs\n", inputs));
    return inputs > 0 ? 0 : 1;
}
