// What Slurm's commands print, and how often they are asked.
#include "agent/control/slurm_nodes.hpp"

#include <doctest/doctest.h>

#include "fake_slurm.hpp"

using ringside::agent::slurm_nodes;
using ringside::tools::FakeSlurm;

TEST_CASE("slurm: each line's nodes with their addresses; all of them are asked for at once") {
    const FakeSlurm slurm("4242_1 4250 n[1-2]\n4242_2 4251 n2\n4242_3 4242 n[1-2]", "n1 n2");
    const auto nodes = slurm_nodes("4242");
    REQUIRE(nodes.size() == 5);
    CHECK(nodes[0].member == "4242_1");
    CHECK(nodes[0].id == "4250");
    CHECK(nodes[0].name == "n1");
    CHECK(nodes[0].address == "127.0.0.1");
    CHECK(nodes[2].id == "4251");
    CHECK(nodes[2].name == "n2");
    CHECK(slurm.asked() == std::vector<std::string>{"hostnames", "hostnames", "node"});
    CHECK(slurm_nodes("4242_2").size() == 1);
}

TEST_CASE("slurm: a list that is none, and a job that is none of Slurm's, are nobody's nodes") {
    const FakeSlurm slurm("4242 4242 n1;reboot", "n1");
    CHECK(slurm_nodes("4242").empty());
    CHECK(slurm_nodes("mine").empty());
    CHECK(slurm.asked().empty());
}
