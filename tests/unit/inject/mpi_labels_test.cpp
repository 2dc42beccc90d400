#include <doctest/doctest.h>

#include <string>

#include "inject/sources/mpi/labels.hpp"

using namespace ringside::inject::mpi;

TEST_CASE(
    "mpi labels: a communicator is named by its parent, its number there and its lowest rank") {
    CHECK(std::string(child_label("world", 2, 0, 1).c_str()) == "world/2.0");
    CHECK(std::string(child_label("world/2.0", 1, 14, 1).c_str()) == "world/2.0/1.14");
}

TEST_CASE("mpi labels: what has no room is named by its id") {
    const std::string longest(27, 'x');
    CHECK(std::string(child_label(longest.c_str(), 1, 2, 0xabc).c_str()) == longest + "/1.2");
    CHECK(std::string(child_label((longest + "x").c_str(), 1, 2, 0xabc).c_str()) ==
          "comm-0000000000000abc");
}
