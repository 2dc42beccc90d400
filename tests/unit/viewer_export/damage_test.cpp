// Inputs that are not whole, not ours, or not there.
#include <doctest/doctest.h>

#include "sample_job.hpp"
#include "schema/frame.hpp"
#include "tests/unit/misaligned.hpp"
#include "viewer_export/load/dump_reader.hpp"
#include "viewer_export/out/table.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export;
using ringside::schema::ErrorCode;

namespace {

std::vector<std::uint8_t> whole_dump(std::vector<std::size_t>* edges = nullptr) {
    DumpMaker dump("alpha");
    dump.process(0, 4000, 0, "worker0", 0);
    LaneMaker& lane = dump.lane(0, 0, 100);
    for (std::uint64_t i = 0; i < 8; ++i) {
        lane.range("aten::add", 100 * i, 100 * i + 50);
        lane.flush();
    }
    dump.footer(1000);
    if (edges != nullptr) *edges = dump.edges();
    return dump.bytes();
}

ringside::schema::Result<model::Job> load_bytes(const TemporaryDirectory& directory,
                                                const std::vector<std::uint8_t>& bytes) {
    write_file(directory / "a.rsd", bytes);
    return load_job({{directory / "a.rsd"}, true, {}});
}

std::string error_of(const std::filesystem::path& path) {
    const auto job = load_job({{path}, true, {}});
    REQUIRE_FALSE(job);
    CHECK(job.error().code == ErrorCode::kInput);
    return job.error().message;
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE(
    "damage: a dump cut at any byte loads up to its last whole chunk and says where it ends") {
    TemporaryDirectory directory;
    std::vector<std::size_t> edges;
    const auto bytes = whole_dump(&edges);
    for (std::size_t size = 0; size <= bytes.size(); ++size) {
        const auto job = load_bytes(
            directory, {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)});
        if (size < edges[1]) {
            CHECK_FALSE(job);
            continue;
        }
        REQUIRE(job);
        std::size_t whole = 0;
        while (whole + 1 < edges.size() && edges[whole + 1] <= size) ++whole;
        CHECK(job->damage.empty() == (size == bytes.size()));
        if (size == bytes.size()) continue;
        CHECK(job->damage[0].offset == edges[whole]);
        CHECK(contains(job->damage[0].text,
                       "byte " + std::to_string(edges[whole]) + " of " + std::to_string(size)));
        // header, process, names, then a chunk a range
        CHECK(job->totals.ranges == (whole < 4 ? 0 : std::min<std::size_t>(whole - 3, 8)));
        CHECK_FALSE(job->nodes[0].complete);
    }
}

TEST_CASE("damage: a flipped bit anywhere is noticed, and nothing behind it is believed") {
    TemporaryDirectory directory;
    std::vector<std::size_t> edges;
    const auto bytes = whole_dump(&edges);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        auto flipped = bytes;
        flipped[i] ^= static_cast<std::uint8_t>(1u << i % 8);
        const auto job = load_bytes(directory, flipped);
        std::size_t chunk = 0;
        while (edges[chunk + 1] <= i) ++chunk;
        if (chunk == 0) {
            // Its padding is the one place that no checksum covers.
            CHECK((!job || job->damage.empty()));
            continue;
        }
        REQUIRE(job);
        if (job->damage.empty()) {
            CHECK(bytes[i] == 0);
            CHECK(edges[chunk + 1] - i < 8);
        } else {
            CHECK(job->damage[0].offset == edges[chunk]);
            CHECK(job->totals.ranges == (chunk < 4 ? 0 : std::min<std::size_t>(chunk - 3, 8)));
        }
    }
}

TEST_CASE("damage: a newer version is refused by name") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha", 9);
    dump.footer(1);
    dump.write(directory / "a.rsd");
    const std::string text = error_of(directory / "a.rsd");
    CHECK(contains(text, "a.rsd"));
    CHECK(contains(text, "version 9"));
    CHECK(contains(text, "install a newer"));
}

TEST_CASE("damage: what is no dump is refused, an empty file and a directory without dumps too") {
    TemporaryDirectory directory;
    write_file(directory / "text.rsd", {'h', 'e', 'l', 'l', 'o', ' ', 't', 'h', 'e', 'r', 'e'});
    CHECK(contains(error_of(directory / "text.rsd"), "not a dump"));
    write_file(directory / "empty.rsd", {});
    CHECK(contains(error_of(directory / "empty.rsd"), "empty"));
    std::filesystem::create_directory(directory / "none");
    CHECK(contains(error_of(directory / "none"), "no dump (*.rsd)"));
    write_file(directory / "none" / "x.rsd.partial", {});
    CHECK(contains(error_of(directory / "none"), "*.partial"));
    CHECK(contains(error_of(directory / "nowhere"), "no such file"));
    std::filesystem::create_directory(directory / "dir.rsd");
    CHECK(contains(error_of(directory / "dir.rsd"), "no dump"));
}

TEST_CASE("damage: an index that is damaged is noted and left out, one that is newer is refused") {
    TemporaryDirectory directory;
    write_sample(directory.path());
    auto framed = IndexMaker({"alpha"}).bytes();
    framed[40] ^= 1;
    write_file(directory / "job.rsj", framed);
    const model::Job job = loaded(directory.path());
    CHECK_FALSE(job.has_index);
    REQUIRE(job.damage.size() == 1);
    CHECK(contains(job.damage[0].text, "checksum"));

    IndexMaker newer({"alpha"});
    newer.index.min_reader = 4;
    newer.write(directory / "job.rsj");
    CHECK(contains(error_of(directory.path()), "version 1 needs a reader of version 4"));
}

TEST_CASE("damage: a dump that the index names and nobody gave is noted") {
    TemporaryDirectory directory;
    write_sample(directory.path());
    std::filesystem::remove(directory / "gamma.rsd");
    const model::Job job = loaded(directory.path());
    REQUIRE(job.damage.size() == 1);
    CHECK(contains(job.damage[0].text, "gamma.rsd"));
    CHECK(job.totals.joined_requests == 1);
    CHECK(job.nodes.size() == 3);
}

TEST_CASE("damage: bytes after the footer are noted") {
    TemporaryDirectory directory;
    auto bytes = whole_dump();
    bytes.resize(bytes.size() + 24);
    const auto job = load_bytes(directory, bytes);
    REQUIRE(job);
    REQUIRE(job->damage.size() == 1);
    CHECK(contains(job->damage[0].text, "24 bytes follow"));
    CHECK(job->totals.ranges == 8);
}

TEST_CASE("damage: the table says that losses are unknown where the footer is missing") {
    TemporaryDirectory directory;
    std::vector<std::size_t> edges;
    auto bytes = whole_dump(&edges);
    bytes.resize(edges[edges.size() - 2]);
    const auto job = load_bytes(directory, bytes);
    REQUIRE(job);
    const auto text = render_table(*job, {});
    REQUIRE(text);
    CHECK(contains(*text, "on alpha unknown"));
    CHECK(contains(*text, "Damaged: 1 note"));
}

TEST_CASE(
    "damage: a chunk of a kind that has no body is noted, and nothing behind it is believed") {
    TemporaryDirectory directory;
    std::vector<std::size_t> edges;
    const auto whole = whole_dump(&edges);
    for (const auto kind : {ringside::fbs::Body::Packed, ringside::fbs::Body::Blocks}) {
        flatbuffers::FlatBufferBuilder builder;
        ringside::fbs::ChunkBuilder chunk(builder);
        chunk.add_body_type(kind);
        ringside::fbs::FinishChunkBuffer(builder, chunk.Finish());
        auto bytes = whole;
        const auto bad =
            frame(ringside::schema::kDumpFrameMagic, builder.GetBufferPointer(), builder.GetSize());
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(edges[4]), bad.begin(), bad.end());
        const auto job = load_bytes(directory, bytes);
        REQUIRE(job);
        REQUIRE(job->damage.size() == 1);
        CHECK(contains(job->damage[0].text, "malformed"));
        CHECK(job->totals.ranges == 1);
    }
}

TEST_CASE(
    "damage: 8-byte numbers that lie at a multiple of 4 alone are noted, and nothing behind them "
    "is believed") {
    TemporaryDirectory directory;
    std::vector<std::size_t> edges;
    const auto whole = whole_dump(&edges);
    for (const Misaligned& chunk : misaligned_chunks()) {
        CAPTURE(chunk.what);
        auto bytes = whole;
        const auto bad =
            frame(ringside::schema::kDumpFrameMagic, chunk.bad.data(), chunk.bad.size());
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(edges[4]), bad.begin(), bad.end());
        const auto job = load_bytes(directory, bytes);
        REQUIRE(job);
        REQUIRE(job->damage.size() == 1);
        CHECK(contains(job->damage[0].text, "malformed"));
        CHECK(job->damage[0].offset == edges[4]);
        CHECK(job->totals.ranges == 1);
    }
}
