// RPC records out of dumps, as a join wants them, and what a job index of version 2 makes of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "sample_job.hpp"
#include "viewer_export/load/rpc_records.hpp"
#include "viewer_export/model/rpc_tree.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export;
using namespace ringside::viewer_export::model;
namespace fbs = ringside::fbs;

namespace {

const auto kNothing = [](const RpcRecord&) {};

/// What read_until() tells, a step of time after the other; each in its step.
std::vector<std::uint64_t> times_told(RpcRecords& records, std::uint64_t step) {
    std::vector<std::uint64_t> times;
    std::uint64_t next = 0;
    for (std::uint64_t limit = 0; next != RpcRecords::kEnd; limit += step) {
        next = records.read_until(limit, [&](const RpcRecord& record) {
            CHECK(record.words[1] < limit);
            CHECK((limit < step || record.words[1] >= limit - step));
            times.push_back(record.words[1]);
        });
        CHECK((next == RpcRecords::kEnd || next >= limit));
    }
    return times;
}

const fbs::HalfRef kNone32{~0u, 0, 0, 0, 0};

}  // namespace

TEST_CASE("rpc records: every half with its place and names, every process with its workers") {
    TemporaryDirectory directory;
    write_sample(directory.path(), false);
    auto nodes = rpc_records({directory / "alpha.rsd", directory / "beta.rsd"});
    REQUIRE(nodes);
    REQUIRE(nodes->size() == 2);
    RpcRecords& beta = nodes->at(1);
    std::vector<std::vector<std::uint64_t>> begins;
    std::vector<std::uint64_t> ends;
    beta.scan([&](const RpcRecord& record) {
        if (record.begin) {
            begins.emplace_back(record.words, record.words + 12).push_back(record.position);
        } else {
            ends.push_back(record.words[1]);
        }
    });
    CHECK(beta.node == "beta");
    CHECK(beta.stop_ticks == 3'000'000);
    REQUIRE(begins.size() == 2);
    const std::vector<std::uint64_t>& client = begins[1];
    CHECK((client[11] >> 8 & 0xff) == 0);
    CHECK(beta.name(0, static_cast<std::uint32_t>(client[8] >> 32)) == "worker1");
    CHECK(beta.name(0, static_cast<std::uint32_t>(client[8])) == "worker2");
    CHECK(client[7] == 1);
    CHECK(client[1] == 500'000);
    CHECK(client[12] == 6);
    CHECK(std::count(ends.begin(), ends.end(), 1'500'000) == 1);
    REQUIRE(beta.processes().size() == 1);
    CHECK(beta.processes()[0].workers == std::vector<std::string>{"worker1"});
    CHECK(beta.processes()[0].events == 8);
}

TEST_CASE("rpc records: told by time although their blocks are not in its order") {
    TemporaryDirectory directory;
    DumpMaker dump("node");
    dump.process(0, 1, 0, "w");
    LaneMaker& late = dump.lane(0, 0, 1);
    LaneMaker& prompt = dump.lane(0, 1, 2);
    for (std::uint64_t i = 0; i < 100; ++i) {
        prompt.rpc_begin(1000 + 100 * i, {false, i, i, 0, "f", "", "w", "w"});
        late.rpc_end(1050 + 100 * i, i);
        prompt.range("other", 1060 + 100 * i, 1070 + 100 * i);
        if (i % 10 == 9) prompt.flush();
        if (i % 25 == 24) late.flush();
    }
    dump.footer(20'000);
    dump.write(directory / "node.rsd");
    for (const std::uint64_t step : {40, 500, 100'000}) {
        auto nodes = rpc_records({directory / "node.rsd"});
        REQUIRE(nodes);
        nodes->at(0).scan(kNothing);
        auto times = times_told(nodes->at(0), step);
        CHECK(times.size() == 200);
        if (step == 40) CHECK(std::is_sorted(times.begin(), times.end()));
    }
}

TEST_CASE("rpc records: a block that comes twice is told once, what follows damage not at all") {
    TemporaryDirectory directory;
    DumpMaker dump("node");
    dump.process(0, 1, 0, "w");
    LaneMaker& lane = dump.lane(0, 0, 1);
    for (std::uint64_t i = 0; i < 3; ++i) {
        lane.rpc_begin(1000 + i, {false, i, i, 0, "f", "", "w", "w"});
        if (i == 0) lane.repeat_from(0);
        lane.flush();
    }
    dump.footer(20'000);
    auto bytes = dump.bytes();
    write_file(directory / "node.rsd", bytes);
    const auto count = [&] {
        auto nodes = rpc_records({directory / "node.rsd"});
        REQUIRE(nodes);
        int halves = 0;
        nodes->at(0).scan([&](const RpcRecord&) { ++halves; });
        CHECK(times_told(nodes->at(0), 100'000).size() == static_cast<std::size_t>(halves));
        return halves;
    };
    CHECK(count() == 3);
    bytes[dump.edges()[dump.edges().size() - 3] + 40] ^= 1;
    write_file(directory / "node.rsd", bytes);
    CHECK(count() == 2);
}

TEST_CASE("index of version 2: in frames, in any order, its trees found by their keys") {
    // A call within a call, and the outer one stands last; nobody has the inner one's caller's dump.
    const std::vector<fbs::Call> calls{
        {1, 2, 8, kNone32, {2, 0, 0, 0, 0}, 5, 0, 0, 900, 950, 0, fbs::RpcState::Cut, false, false},
        {3,
         4,
         9,
         {1, 0, 0, 0, 6},
         {2, 0, 0, 0, 3},
         7,
         1,
         500,
         510,
         520,
         530,
         fbs::RpcState::Joined,
         false,
         true},
        {5,
         6,
         10,
         {0, 0, 0, 0, 0},
         {1, 0, 0, 0, 0},
         1,
         0,
         100,
         110,
         600,
         610,
         fbs::RpcState::Joined,
         false,
         true},
        {7,
         8,
         11,
         {0, 0, 0, 0, 9},
         kNone32,
         0,
         1,
         50,
         0,
         0,
         60,
         fbs::RpcState::Orphan,
         false,
         false},
    };
    for (const std::size_t in_frame : {1, 2, 100}) {
        TemporaryDirectory directory;
        write_sample(directory.path(), false);
        IndexMaker({"alpha", "beta", "gamma"}).write_calls(directory / "job.rsj", calls, in_frame);
        const Job job = loaded(directory.path());
        REQUIRE(job.damage.empty());
        REQUIRE(job.calls.size() >= 4);
        CHECK(job.calls[0].span == 11);
        CHECK(job.calls[1].span == 10);
        CHECK(job.calls[2].span == 9);
        CHECK(job.calls[3].span == 8);
        CHECK(job.calls[2].parent == 1);
        CHECK(job.calls[2].trace == ringside::schema::TraceId{5, 6});
        CHECK(job.calls[1].parent == model::kNone);
        CHECK(job.calls[0].trace == ringside::schema::TraceId{7, 8});
    }
}

TEST_CASE("index of version 2: calls that are each other's parents are opened somewhere") {
    TemporaryDirectory directory;
    write_sample(directory.path(), false);
    std::vector<fbs::Call> calls;
    for (std::uint64_t i = 0; i < 3; ++i) {
        calls.push_back({i + 1,
                         i + 1,
                         i,
                         {0, 9, 0, 0, 10 * i},
                         {0, 9, 1, 0, 10 * i},
                         i + 1,
                         (i + 1) % 3 + 1,
                         10,
                         11,
                         19,
                         20,
                         fbs::RpcState::Joined,
                         false,
                         true});
    }
    IndexMaker({"alpha", "beta", "gamma"}).write_calls(directory / "job.rsj", calls, 100);
    const Job job = loaded(directory.path());
    int roots = 0;
    for (std::size_t i = 0; i < 3; ++i) {
        roots += job.calls[i].parent == model::kNone ? 1 : 0;
        CHECK(job.calls[i].trace == job.calls[0].trace);
    }
    CHECK(roots == 1);
}

TEST_CASE("index of version 2: one that lacks its last frame is damaged") {
    TemporaryDirectory directory;
    write_sample(directory.path(), false);
    IndexMaker maker({"alpha", "beta", "gamma"});
    const std::vector<fbs::Call> calls(3, fbs::Call{});
    maker.write_calls(directory / "job.rsj", calls, 1);
    const std::size_t last = maker.bytes().size();
    std::filesystem::resize_file(directory / "job.rsj",
                                 std::filesystem::file_size(directory / "job.rsj") - last);
    const Job job = loaded(directory.path());
    CHECK_FALSE(job.has_index);
    REQUIRE(job.damage.size() == 1);
    CHECK(job.damage[0].text.find("without its last one") != std::string::npos);
}
