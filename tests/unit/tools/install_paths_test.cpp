// The agent and the shim, found from the command's own place.
#include "tools/ringside/install_paths.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "config.hpp"
#include "tests/unit/tools/temporary_directory.hpp"

namespace {

using ringside::tools::find_install_paths;
using ringside::tools::TemporaryDirectory;
namespace fs = std::filesystem;

TEST_CASE("install paths: in a build tree, beside tools/") {
    const TemporaryDirectory tree;
    const std::string agent = tree.write("agent/ringside-agent", "a", true);
    const std::string shim = tree.write("inject/libringside_inject.so", "s");
    fs::create_directory(tree.path() / "tools");
    const auto found = find_install_paths((tree.path() / "tools/ringside").string());
    REQUIRE(found);
    CHECK(found->agent == fs::canonical(agent).string());
    CHECK(found->shim == fs::canonical(shim).string());
}

TEST_CASE("install paths: in a prefix, wherever it was moved to") {
    const TemporaryDirectory tree;
    const fs::path library = fs::path(ringside::tools::kConfiguredLibraryDir)
                                 .lexically_relative(ringside::tools::kConfiguredBinDir);
    const std::string agent = tree.write("moved/bin/ringside-agent", "a", true);
    const std::string shim = tree.write(
        ("moved/bin" / library / "libringside_inject.so").lexically_normal().string(), "s");
    const auto found = find_install_paths((tree.path() / "moved/bin/ringside").string());
    REQUIRE(found);
    CHECK(found->agent == fs::canonical(agent).string());
    CHECK(found->shim == fs::canonical(shim).string());
}

TEST_CASE("install paths: what is missing is named with the places that were searched") {
    const TemporaryDirectory tree;
    const auto found = find_install_paths((tree.path() / "bin/ringside").string());
    REQUIRE_FALSE(found);
    CHECK(found.error().message.find((tree.path() / "bin/ringside-agent").string()) !=
          std::string::npos);
}

}  // namespace
