// big_dump RANGES FILE: makes a big dump, for tests of the command.
#include <cstdlib>

#include "big_dump.hpp"

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    ringside::tests::make_big_dump(std::strtoull(argv[1], nullptr, 10), false, argv[2]);
    return 0;
}
