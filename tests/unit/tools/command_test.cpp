// Files are written whole, or not at all.
#include "tools/ringside/command.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/unit/tools/temporary_directory.hpp"

namespace {

using ringside::tools::TemporaryDirectory;
using ringside::tools::write_file;
namespace fs = std::filesystem;

std::string content(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

TEST_CASE("write_file: a new file, and one that was there") {
    const TemporaryDirectory folder;
    const fs::path path = folder.path() / "table.txt";
    REQUIRE(write_file(path.string(), "one"));
    REQUIRE(write_file(path.string(), "two"));
    CHECK(content(path) == "two");
    CHECK_FALSE(fs::exists(path.string() + ".partial"));
}

TEST_CASE("write_file: a link stays a link, its target is written") {
    const TemporaryDirectory folder;
    folder.write("target", "old");
    const fs::path link = folder.path() / "link";
    fs::create_symlink("target", link);
    REQUIRE(write_file(link.string(), "new"));
    CHECK(fs::is_symlink(link));
    CHECK(content(folder.path() / "target") == "new");
}

TEST_CASE("write_file: a pipe is written, not replaced") {
    const TemporaryDirectory folder;
    const std::string pipe = (folder.path() / "pipe").string();
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
    REQUIRE(write_file(pipe, "x"));
    char byte = 0;
    CHECK(::read(reader, &byte, 1) == 1);
    CHECK(byte == 'x');
    CHECK(fs::is_fifo(pipe));
    ::close(reader);
}

TEST_CASE(
    "write_file: in a directory that is not there, an error that names the file, and no file") {
    const TemporaryDirectory folder;
    const std::string path = (folder.path() / "none/table.txt").string();
    const auto written = write_file(path, "x");
    REQUIRE_FALSE(written);
    CHECK(written.error().message.find(path) != std::string::npos);
}

}  // namespace
