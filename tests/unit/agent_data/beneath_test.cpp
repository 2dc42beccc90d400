// What a request's name can open beneath a root, with openat2 and without.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "agent/attach/beneath.hpp"
#include "tests/unit/agent_data/fake_job.hpp"

using namespace ringside::agent;
using namespace ringside::agent::testing;

namespace {

using Open = FileHandle (*)(int, const std::string&, int, mode_t);

void each_way(void (*check)(Open)) {
    SUBCASE("by openat2") {
        check(open_beneath);
    }
    SUBCASE("by components") {
        check(open_by_components);
    }
}

}  // namespace

TEST_CASE("beneath: what lies in the root is opened, and made where it is asked for") {
    each_way([](Open open) {
        const TemporaryDirectory top;
        REQUIRE(::mkdir(top.sub("a").c_str(), 0700) == 0);
        const FileHandle root(::open(top.path().c_str(), O_RDONLY | O_DIRECTORY));
        const FileHandle made = open(root.get(), "a/new", O_WRONLY | O_CREAT | O_EXCL, 0600);
        REQUIRE(made);
        CHECK((::fcntl(made.get(), F_GETFD) & FD_CLOEXEC) != 0);
        CHECK(open(root.get(), "a/new", O_RDONLY, 0));
        CHECK(open(root.get(), "a", O_RDONLY | O_DIRECTORY, 0));
        CHECK_FALSE(open(root.get(), "a/missing", O_RDONLY, 0));
        CHECK(errno == ENOENT);
    });
}

TEST_CASE("beneath: no name and no link leads out of the root") {
    each_way([](Open open) {
        const TemporaryDirectory top;
        for (const char* folder : {"root", "root/in", "out"})
            REQUIRE(::mkdir(top.sub(folder).c_str(), 0700) == 0);
        std::ofstream(top.sub("out/precious")) << "x";
        REQUIRE(::symlink("../out", top.sub("root/away").c_str()) == 0);
        REQUIRE(::symlink(top.sub("out").c_str(), top.sub("root/far").c_str()) == 0);
        REQUIRE(::symlink("in", top.sub("root/near").c_str()) == 0);
        REQUIRE(::symlink("../../out/precious", top.sub("root/in/file").c_str()) == 0);
        const FileHandle root(::open(top.sub("root").c_str(), O_RDONLY | O_DIRECTORY));
        const std::string absolute = top.sub("out/precious");
        for (const char* path : {"../out/precious", "in/../../out/precious", absolute.c_str(), "..",
                                 ".", "", "in//x", "in/", "in/.."}) {
            CAPTURE(path);
            CHECK_FALSE(open(root.get(), path, O_RDONLY, 0));
            CHECK(errno == EXDEV);
        }
        for (const char* path :
             {"away/precious", "far/precious", "near/new", "in/file", "away", "near", "away/new"}) {
            CAPTURE(path);
            CHECK_FALSE(open(root.get(), path, O_RDWR | O_CREAT, 0600));
            CHECK((errno == ELOOP || errno == ENOTDIR));
        }
        CHECK(::access(top.sub("out/new").c_str(), F_OK) != 0);
    });
}
