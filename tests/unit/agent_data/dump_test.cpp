// The dump's writer: names, bounds, a full disk, the final name.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "agent/dump/dump_writer.hpp"
#include "schema/block_codec.hpp"
#include "tests/unit/agent_data/dump_file.hpp"
#include "tests/unit/agent_data/fake_job.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;

namespace {

/// A block of `count` ranges.
Block make_block(std::uint64_t first, std::uint32_t count) {
    Block block;
    block.first = first;
    block.last = first + count;
    block.base_ticks = 1000;
    block.records = count;
    block.data.resize(count * schema::kMaxEncodedRecordBytes);
    schema::BlockEncoder encoder(block.base_ticks);
    std::uint8_t* out = block.data.data();
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint64_t words[4] = {
            schema::RecordHeader{schema::RecordKind::kRange, 1, 0x10, {}}.pack(),
            1000 + i * 1000003ull, 1000 + i * 1000003ull + 500, 0};
        out = encoder.record(words, out);
    }
    block.data.resize(static_cast<std::size_t>(out - block.data.data()));
    return block;
}

bool write(DumpWriter& writer, const Block& block) {
    const Block* const list[] = {&block};
    return writer.blocks(list);
}

/// A limit on files' sizes stands in for the disk's end: a write fails in the same place.
class FullDisk {
public:
    explicit FullDisk(rlim_t bytes) {
        ::getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit small{bytes, before_.rlim_max};
        std::signal(SIGXFSZ, SIG_IGN);
        ::setrlimit(RLIMIT_FSIZE, &small);
    }
    ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }
    FullDisk(const FullDisk&) = delete;
    FullDisk& operator=(const FullDisk&) = delete;

private:
    rlimit before_{};
};

DumpFooter footer_of(std::uint64_t kept, std::uint64_t lost) {
    DumpFooter footer;
    LaneAccount account;
    account.kept = kept;
    account.lost = lost;
    footer.lanes.push_back({0, account});
    footer.processes.push_back({});
    return footer;
}

}  // namespace

TEST_CASE("dump: compressed holds the same in fewer bytes, and says which reader it needs") {
    TemporaryDirectory top;
    std::vector<DumpFile> dumps;
    std::vector<std::uint64_t> bytes;
    for (const bool compress : {false, true}) {
        const std::string name = compress ? "packed" : "plain";
        auto writer = DumpWriter::create({top.sub("out"), name, "node", 0, compress});
        REQUIRE(writer);
        (*writer)->header({});
        for (std::uint64_t i = 0; i < 8; ++i) CHECK(write(**writer, make_block(i * 5000, 5000)));
        CHECK(write(**writer, make_block(40000, 1)));  // too small to shrink
        const DumpReceipt receipt = (*writer)->finish(footer_of(40001, 0));
        CHECK(receipt.complete);
        dumps.push_back(read_dump(receipt.path));
        bytes.push_back(receipt.bytes);
        CHECK_MESSAGE(dumps.back().good, dumps.back().fault);
    }
    const auto& [plain, packed] = std::tie(dumps[0], dumps[1]);
    CHECK(plain.packed == 0);
    CHECK(plain.header.min_reader == 1);
    CHECK(packed.packed == 8);
    CHECK(packed.header.min_reader == 2);
    REQUIRE(packed.records.size() == 40001);
    CHECK(std::equal(plain.records.begin(), plain.records.end(), packed.records.begin(),
                     [](const DumpRecord& a, const DumpRecord& b) {
                         return a.position == b.position && a.words == b.words;
                     }));
    CHECK(bytes[1] * 2 < bytes[0]);
}

TEST_CASE(
    "dump: has its final name only when it is whole; files and folders are this user's alone") {
    TemporaryDirectory top;
    auto writer = DumpWriter::create({top.sub("out"), "a/b", "node", 0});
    REQUIRE(writer);
    CHECK(exists(top.sub("out/a/b/node.rsd.partial")));
    (*writer)->header({});
    CHECK(write(**writer, make_block(0, 10)));
    CHECK_FALSE(exists(top.sub("out/a/b/node.rsd")));
    const DumpReceipt receipt = (*writer)->finish(footer_of(10, 0));
    CHECK(receipt.complete);
    CHECK(receipt.error.empty());
    CHECK(receipt.path == top.sub("out/a/b/node.rsd"));
    CHECK_FALSE(exists(top.sub("out/a/b/node.rsd.partial")));
    struct stat status {};
    REQUIRE(::stat(receipt.path.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);
    CHECK(static_cast<std::uint64_t>(status.st_size) == receipt.bytes);
    REQUIRE(::stat(top.sub("out/a").c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0700);
    const DumpFile dump = read_dump(receipt.path);
    CHECK_MESSAGE(dump.good, dump.fault);
    CHECK(dump.records.size() == 10);
    CHECK(dump.footer.records == 10);
    CHECK(dump.header.node == "node");
}

TEST_CASE("dump: no name leaves the output root") {
    TemporaryDirectory top;
    for (const char* name : {"", "..", "../x", "a/../../x", "/etc", "a//b", "a/", "."})
        CHECK_FALSE(DumpWriter::create({top.sub("out"), name, "node", 0}));
    for (const char* node : {"", "..", "a/b"})
        CHECK_FALSE(DumpWriter::create({top.sub("out"), "name", node, 0}));
}

TEST_CASE("dump: a link beneath the output root is refused, not followed") {
    TemporaryDirectory top;
    ::mkdir(top.sub("out").c_str(), 0700);
    ::mkdir(top.sub("victim").c_str(), 0700);
    REQUIRE(::symlink(top.sub("victim").c_str(), top.sub("out/name").c_str()) == 0);
    const auto writer = DumpWriter::create({top.sub("out"), "name", "node", 0});
    REQUIRE_FALSE(writer);
    CHECK(writer.error().code == schema::ErrorCode::kRefused);
    CHECK_FALSE(exists(top.sub("victim/node.rsd.partial")));
}

TEST_CASE("dump: one that is there is not written over") {
    TemporaryDirectory top;
    auto first = DumpWriter::create({top.path(), "name", "node", 0});
    REQUIRE(first);
    const auto again = DumpWriter::create({top.path(), "name", "node", 0});
    REQUIRE_FALSE(again);
    CHECK(again.error().message.find("did not end") != std::string::npos);
    (*first)->header({});
    (*first)->finish({});
    CHECK_FALSE(DumpWriter::create({top.path(), "name", "node", 0}));
}

TEST_CASE("dump: a bound is kept, footer included, and said") {
    TemporaryDirectory top;
    constexpr std::uint64_t kBound = 20000;
    auto writer = DumpWriter::create({top.path(), "name", "node", kBound});
    REQUIRE(writer);
    (*writer)->header({});
    (*writer)->reserve_end(1, 1, 0);
    std::uint64_t kept = 0, lost = 0;
    for (std::uint64_t i = 0; i < 50; ++i)
        (write(**writer, make_block(i * 100, 100)) ? kept : lost) += 100;
    CHECK(kept > 0);
    CHECK(lost > 0);
    const DumpReceipt receipt = (*writer)->finish(footer_of(kept, lost));
    CHECK_FALSE(receipt.complete);
    CHECK(receipt.error.find("--max-bytes") != std::string::npos);
    CHECK(receipt.bytes <= kBound);
    const DumpFile dump = read_dump(receipt.path);
    CHECK_MESSAGE(dump.good, dump.fault);
    CHECK(dump.records.size() == kept);
    CHECK(dump.footer.lost == lost);
}

TEST_CASE("dump: a bound is kept where a process has a last word after it was reached") {
    TemporaryDirectory top;
    ProcessFacts process;
    process.segment.command_line = {std::string(700, 'c')};
    ProcessFacts ended = process;
    ended.end = ProcessEndFacts{};
    ended.end->losses.assign(16, 1);
    ended.end_reason = std::string(80, 'r');
    std::uint64_t greatest = 0;
    // Bounds of all distances to the last block's end.
    for (std::uint64_t bound = 20000; bound < 21000; bound += 20) {
        const std::string name = std::to_string(bound);
        auto writer = DumpWriter::create({top.path(), name, "node", bound});
        REQUIRE(writer);
        (*writer)->header({});
        (*writer)->process(process);
        (*writer)->reserve_end(1, 1, 1);
        std::uint64_t kept = 0;
        for (std::uint64_t i = 0; i < 500; ++i)
            kept += write(**writer, make_block(i * 10, 10)) ? 10 : 0;
        (*writer)->process(ended);
        const DumpReceipt receipt = (*writer)->finish(footer_of(kept, 5000 - kept));
        CHECK(receipt.bytes <= bound);
        greatest = std::max(greatest, receipt.bytes);
    }
    // It is not kept by leaving much free.
    CHECK(greatest > 19000);
}

TEST_CASE("dump: when the disk is full the partial file stays, whole frames only, and says so") {
    TemporaryDirectory top;
    auto writer = DumpWriter::create({top.path(), "name", "node", 0});
    REQUIRE(writer);
    (*writer)->header({});
    std::uint64_t kept = 0;
    DumpReceipt receipt;
    {
        const FullDisk full(30000);
        for (std::uint64_t i = 0; i < 50; ++i)
            kept += write(**writer, make_block(i * 300, 300)) ? 300 : 0;
        receipt = (*writer)->finish(footer_of(kept, 15000 - kept));
    }
    CHECK(kept > 0);
    CHECK(kept < 15000);
    CHECK_FALSE(receipt.complete);
    CHECK(receipt.error.find("File too large") != std::string::npos);
    CHECK(receipt.path == top.sub("name/node.rsd.partial"));
    CHECK_FALSE(exists(top.sub("name/node.rsd")));
    const DumpFile dump = read_dump(receipt.path);
    CHECK_MESSAGE(dump.good, dump.fault);
    CHECK(dump.records.size() == kept);
}

TEST_CASE("dump: with room again it goes on, with all names and processes of meanwhile before") {
    TemporaryDirectory top;
    auto writer = DumpWriter::create({top.path(), "name", "node", 0});
    REQUIRE(writer);
    (*writer)->header({});
    (*writer)->process({});
    std::uint64_t kept = write(**writer, make_block(0, 300)) ? 300 : 0, lost = 0;
    {
        const FullDisk full(100);  // what is there already lies beyond: each write fails
        ProcessFacts late;
        late.index = 1;
        late.worker_name = "late";
        (*writer)->process(late);
        NamesBatch names;
        names.process = 1;
        names.names.push_back({0x10, "met meanwhile", 0, 0});
        (*writer)->names(names);
        for (std::uint64_t i = 1; i < 4; ++i)
            lost += write(**writer, make_block(i * 300, 300)) ? 0 : 300;
    }
    CHECK(lost == 900);
    Block after = make_block(4 * 300, 300);
    after.process = 1;
    REQUIRE(write(**writer, after));
    kept += 300;
    const DumpReceipt receipt = (*writer)->finish(footer_of(kept, lost));
    CHECK_FALSE(receipt.complete);
    CHECK(receipt.error.find("File too large") != std::string::npos);
    CHECK(receipt.error.find("counted as lost") != std::string::npos);
    CHECK(receipt.path == top.sub("name/node.rsd.partial"));
    const DumpFile dump = read_dump(receipt.path);
    CHECK_MESSAGE(dump.good, dump.fault);
    CHECK(dump.records.size() == kept);
    CHECK(dump.processes.size() == 2);
    CHECK(dump.names.at({1, 0x10}) == "met meanwhile");
}

TEST_CASE("dump: a disk that has no room for the header has it first when there is some") {
    TemporaryDirectory top;
    auto writer = DumpWriter::create({top.path(), "name", "node", 0});
    REQUIRE(writer);
    {
        const FullDisk full(0);
        (*writer)->header({});
        CHECK_FALSE(write(**writer, make_block(0, 300)));
    }
    REQUIRE(write(**writer, make_block(300, 300)));
    const DumpReceipt receipt = (*writer)->finish(footer_of(300, 300));
    const DumpFile dump = read_dump(receipt.path);
    CHECK_MESSAGE(dump.good, dump.fault);
    CHECK(dump.records.size() == 300);
}
