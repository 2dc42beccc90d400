// What dumps are called where they are brought to, and that nothing is written over.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "temporary_directory.hpp"
#include "tools/ringside/dump_names.hpp"
#include "tools/ringside/fetched_file.hpp"
#include "tools/ringside/output_dir.hpp"

using namespace ringside::tools;
using ringside::schema::ErrorCode;

namespace {

const NameFacts kFacts{"login node", "n7", "42/1", {3, 1, 2, 9, -1}, {4711}};

std::string named(const std::string& pattern, const NameFacts& facts = kFacts) {
    const auto name = dump_name(pattern, facts);
    return name ? *name : "error " + name.error().message;
}

std::string text_of(const std::filesystem::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("dump names: each letter is what it says, and nothing of it leaves the directory") {
        CHECK(named("%n") == "n7.rsd");
        CHECK(named("%h_%j.%r-%p") == "login_node_42_1.1-3+9-4711.rsd");
        CHECK(named("100%%.rsd") == "100%.rsd");
        CHECK(named("%r-%p", {"h", "n", "j", {}, {}}) == "none-none.rsd");
    }

    TEST_CASE("dump names: unknown letters and what is no name are refused") {
        for (const char* pattern : {"%q", "%", "a%", "a/%n", "../%n", "", ".%n", "-%n", "a\nb"}) {
            CAPTURE(pattern);
            const auto name = dump_name(pattern, kFacts);
            REQUIRE(!name);
            CHECK(name.error().code == ErrorCode::kUsage);
        }
        CHECK(!dump_name(std::string(197, 'x'), kFacts));
        CHECK(dump_name(std::string(196, 'x'), kFacts));
        CHECK(named("%q").find("'%q'") != std::string::npos);
    }

    TEST_CASE("dump names: many numbers are told by the first and how many more") {
        std::vector<std::int32_t> odd;
        for (std::int32_t number = 1; number < 1000; number += 2) odd.push_back(number);
        CHECK(numbers_text(odd) == "1+499more");
        CHECK(numbers_text({0, 1, 2, 3}) == "0-3");
        CHECK(numbers_text({5, 5}) == "5");
    }

    TEST_CASE("output directory: a file that is there is written over with --force alone") {
        const TemporaryDirectory folder;
        const std::string source = folder.write("agent/a.rsd", "new");
        folder.write("out/a.rsd", "old");
        const std::string out = (folder.path() / "out").string();
        const auto refused = OutputDir::open(out, "");
        REQUIRE(!refused);
        CHECK(refused.error().message.find("a.rsd") != std::string::npos);
        CHECK(refused.error().message.find("--force") != std::string::npos);
        for (const bool keep : {true, false}) {
            const auto beside = OutputDir::open(out, "", OutputDir::Found::kAddTo);
            REQUIRE(beside);
            const auto taken = beside->take(source, keep);
            REQUIRE(!taken);
            CHECK(taken.error().code == ErrorCode::kUsage);
            CHECK(taken.error().message.find(out + "/a.rsd") != std::string::npos);
            CHECK(text_of(out + "/a.rsd") == "old");
            CHECK(text_of(source) == "new");
        }
        const auto over = OutputDir::open(out, "", OutputDir::Found::kOverwrite);
        REQUIRE(over);
        REQUIRE(over->take(source, true));
        CHECK(text_of(out + "/a.rsd") == "new");
        const auto other = over->take(source, false, "b.rsd");
        REQUIRE(other);
        CHECK(text_of(out + "/b.rsd") == "new");
        CHECK(!std::filesystem::exists(source));
    }

    TEST_CASE("output directory: what is whole gets its name, but not another file's") {
        const TemporaryDirectory folder;
        const std::string out = folder.path().string();
        const auto beside = OutputDir::open(out, "", OutputDir::Found::kAddTo);
        REQUIRE(beside);
        folder.write("a.rsd.partial", "whole");
        CHECK(beside->partial("a.rsd") == beside->absolute() + "/a.rsd.partial");
        REQUIRE(beside->finish("a.rsd"));
        CHECK(text_of(out + "/a.rsd") == "whole");
        folder.write("a.rsd.partial", "another");
        const auto taken = beside->finish("a.rsd");
        REQUIRE(!taken);
        CHECK(taken.error().code == ErrorCode::kUsage);
        CHECK(text_of(out + "/a.rsd") == "whole");
    }

    TEST_CASE("fetched: the line says how much came how fast, and what went wrong on the way") {
        ringside::agent::Fetched fetched;
        fetched.bytes = 64 << 20;
        CHECK(fetched_text(fetched, 2'000'000'000).find(", 33.6 MB/s") != std::string::npos);
        CHECK(fetched_text(fetched, 2'000'000'000).find(';') == std::string::npos);
        fetched.kept_bytes = 32 << 20;
        fetched.reconnected = 2;
        const std::string text = fetched_text(fetched, 2'000'000'000);
        CHECK(text.find(", 16.8 MB/s; 32.0 MiB of it were here; connected again 2 times") !=
              std::string::npos);
    }
}
