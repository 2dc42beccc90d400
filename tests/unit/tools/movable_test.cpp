// What may be moved on an agent's word: this trace's dumps and index, and nothing else that the user has.
#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

#include "synthetic_dumps.hpp"
#include "temporary_directory.hpp"
#include "tools/ringside/index_beside.hpp"
#include "tools/ringside/movable.hpp"

using namespace ringside::tools;
using ringside::schema::ErrorCode;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kCapture = 7;  // write_synthetic's

/// Two nodes' dumps of one capture.
struct Dumps {
    Dumps() {
        ringside::tests::SyntheticJob job;
        job.halves = 100;
        ringside::tests::write_synthetic(job, folder.path());
    }
    std::string at(const std::string& name) const { return (folder.path() / name).string(); }

    TemporaryDirectory folder;
};

bool may(const std::string& path, const Origin& origin) {
    return static_cast<bool>(check_movable(path, origin));
}

}  // namespace

TEST_CASE("movable: a dump of the node and the capture is") {
    const Dumps dumps;
    const auto facts = check_movable(dumps.at("node00.rsd"), {kCapture, "node00"});
    REQUIRE(facts);
    CHECK(static_cast<std::uintmax_t>(facts->st_size) == fs::file_size(dumps.at("node00.rsd")));
}

TEST_CASE("movable: a dump that could not be finished is") {
    const Dumps dumps;
    fs::rename(dumps.at("node00.rsd"), dumps.at("node00.rsd.partial"));
    CHECK(may(dumps.at("node00.rsd.partial"), {kCapture, "node00"}));
}

TEST_CASE("movable: another capture's dump is not") {
    const Dumps dumps;
    CHECK_FALSE(may(dumps.at("node00.rsd"), {kCapture + 1, "node00"}));
}

TEST_CASE("movable: where captures differ, the node tells alone") {
    const Dumps dumps;
    CHECK(may(dumps.at("node00.rsd"), {std::nullopt, "node00"}));
    CHECK_FALSE(may(dumps.at("node00.rsd"), {std::nullopt, "node01"}));
}

TEST_CASE("movable: another node's dump is not") {
    const Dumps dumps;
    CHECK_FALSE(may(dumps.at("node01.rsd"), {kCapture, "node00"}));
}

TEST_CASE("movable: a dump by another name is not") {
    const Dumps dumps;
    fs::rename(dumps.at("node00.rsd"), dumps.at("authorized_keys"));
    CHECK_FALSE(may(dumps.at("authorized_keys"), {kCapture, "node00"}));
}

TEST_CASE("movable: what is only called a dump or an index is not") {
    const Dumps dumps;
    for (const char* name : {"mine.rsd", "mine.rsj", "mine.rsd.partial", "empty.rsd"}) {
        const std::string path =
            dumps.folder.write(name, name == std::string("empty.rsd") ? "" : "ssh-ed25519 AAAA\n");
        CHECK_FALSE(may(path, {kCapture, "node00"}));
        CHECK_FALSE(may(path, {std::nullopt, ""}));
    }
}

TEST_CASE("movable: a link is not, whatever it leads to") {
    const Dumps dumps;
    fs::create_symlink(dumps.at("node00.rsd"), dumps.at("link.rsd"));
    CHECK_FALSE(may(dumps.at("link.rsd"), {kCapture, "node00"}));
}

TEST_CASE("movable: a pipe is not, and nobody waits for it") {
    const Dumps dumps;
    REQUIRE(::mkfifo(dumps.at("pipe.rsd").c_str(), 0600) == 0);
    CHECK_FALSE(may(dumps.at("pipe.rsd"), {kCapture, "node00"}));
}

TEST_CASE("movable: another user's file is not") {
    const Dumps dumps;
    if (::geteuid() != 0) {
        MESSAGE("giving a file away needs root");
        return;
    }
    REQUIRE(::chown(dumps.at("node00.rsd").c_str(), 65534, 65534) == 0);
    CHECK_FALSE(may(dumps.at("node00.rsd"), {kCapture, "node00"}));
}

TEST_CASE("movable: where nothing lies, that is said") {
    const auto checked = check_movable("/nowhere/at/all.rsd", {kCapture, "node00"});
    REQUIRE_FALSE(checked);
    CHECK(checked.error().code == ErrorCode::kNothingMatched);
}

TEST_CASE("movable: the index of the capture is, another one's is not") {
    const Dumps dumps;
    const auto index = index_beside(dumps.at("node00.rsd"));
    REQUIRE(index);
    CHECK(may(*index, {kCapture, ""}));
    CHECK_FALSE(may(*index, {kCapture + 1, ""}));
}
