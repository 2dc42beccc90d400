// What a reader needs to make trees of calls, and the job index that carries it.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/correlate/job_writer.hpp"
#include "agent/correlate/join.hpp"
#include "folder.hpp"
#include "halves.hpp"
#include "index_frames.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
namespace fbs = ringside::fbs;

namespace {

/// worker0 -> worker1 -> worker2, two times, the second with another root.
std::vector<NodeCapture> chains() {
    std::vector<NodeCapture> nodes{node("a"), node("b", 1000 * kMs), node("c", -3 * kMs)};
    for (std::uint32_t n = 0; n < 3; ++n)
        nodes[n].processes.push_back(process(0, {"worker" + std::to_string(n)}));
    for (std::uint64_t i = 0; i < 2; ++i) {
        const std::int64_t t = (10 + 100 * static_cast<std::int64_t>(i)) * kMs;
        nodes[0].halves.push_back(client("worker0", "worker1", i, t, t + 50 * kMs));
        nodes[1].halves.push_back(server("worker1", "worker0", i, t + kMs, t + 49 * kMs));
        nodes[1].halves.push_back(client("worker1", "worker2", i, t + 2 * kMs, t + 40 * kMs));
        nodes[1].halves.back().parent_key = nodes[1].halves[2 * i].key;
        nodes[2].halves.push_back(server("worker2", "worker1", i, t + 3 * kMs, t + 39 * kMs));
    }
    return nodes;
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("tree: a call names the key of what its process was serving, and its own") {
        const auto nodes = chains();
        const JoinResult result = joined(nodes);
        REQUIRE(result.calls.size() == 4);
        for (const std::size_t root : {0, 2}) {
            CHECK(result.calls[root].told.parent_key() == 0);
            CHECK(result.calls[root].told.key() != 0);
            CHECK(result.calls[root + 1].told.parent_key() == result.calls[root].told.key());
        }
        CHECK(result.calls[0].trace.valid());
        CHECK(result.calls[0].trace != result.calls[2].trace);
        CHECK(joined(nodes, {8, true}).calls[0].trace != result.calls[0].trace);
    }

    TEST_CASE("tree: a wire's own trace id is kept") {
        auto nodes = chains();
        nodes[0].halves[0].id.trace = nodes[1].halves[0].id.trace = {11, 12};
        const JoinResult result = joined(nodes);
        CHECK(result.calls[0].state() == RpcState::Joined);
        CHECK(result.calls[0].trace == ringside::schema::TraceId{11, 12});
    }

    TEST_CASE("job index: says what the join found, in a frame that verifies") {
        const Folder folder;
        auto nodes = chains();
        nodes[1].dump = "b.rsd";
        nodes[2].error = "lost on the way";
        nodes[0].halves.push_back(client("worker0", "elsewhere", 9, 10 * kMs, 20 * kMs));
        auto writer = IndexWriter::create(folder.path());
        REQUIRE(writer);
        const JoinCounts counts = join(nodes, {7, true}, **writer);
        CHECK(::access((folder.path() + "/job.rsj.partial").c_str(), F_OK) == 0);
        const auto path = (*writer)->finish({"job", "a", 7, true}, nodes, counts);
        REQUIRE(path);
        CHECK(*path == folder.path() + "/job.rsj");
        CHECK(::access((*path + ".partial").c_str(), F_OK) != 0);

        const auto file = read_file(*path);
        const auto frames = frames_of(file);
        REQUIRE(frames.size() == 1);
        const fbs::JobIndex* job = frames[0];
        CHECK(job->min_reader() == 2);
        CHECK(job->nodes()->size() == 3);
        CHECK(job->nodes()->Get(1)->clock()->offset_ns() == -1000 * kMs);
        CHECK(job->nodes()->Get(1)->dump()->str() == "b.rsd");
        CHECK(job->nodes()->Get(2)->error()->str() == "lost on the way");
        CHECK(job->verdicts()->size() == 3);
        CHECK(job->calls()->size() == 5);
        CHECK(job->joined_requests() == 4);
        CHECK(job->cut() == 1);
    }

    TEST_CASE("job index: many calls are many frames, the last one says how many") {
        std::vector<NodeCapture> nodes{node("a")};
        nodes[0].processes.push_back(process(0, {"worker0"}));
        constexpr std::uint64_t kCalls = 20'000;
        for (std::uint64_t i = 0; i < kCalls; ++i) {
            const auto begin = static_cast<std::int64_t>(10 * kMs + i * 1000);
            nodes[0].halves.push_back(client("worker0", "worker0", i, begin, begin + 900));
            nodes[0].halves.push_back(server("worker0", "worker0", i, begin + 100, begin + 800));
        }
        IndexWriter writer;
        const JoinCounts counts = join(nodes, {7, true}, writer);
        REQUIRE(writer.finish({"job", "a", 7, true}, nodes, counts));
        const auto bytes = writer.take_bytes();
        const auto frames = frames_of(bytes);
        REQUIRE(frames.size() > 1);
        std::size_t calls = 0;
        for (const fbs::JobIndex* frame : frames) {
            CHECK(frame->min_reader() == 2);
            CHECK((frame == frames.back()) == (frame->nodes() != nullptr));
            calls += frame->calls()->size();
        }
        CHECK(calls == kCalls);
        CHECK(frames.back()->frames() == frames.size());
        CHECK(counts.joined_replies == kCalls);
    }

    TEST_CASE("job index: without calls an older reader will do") {
        const std::vector<NodeCapture> nodes{node("a")};
        IndexWriter writer;
        REQUIRE(writer.finish({"job", "a", 7, true}, nodes, {}));
        const auto bytes = writer.take_bytes();
        CHECK(frames_of(bytes).at(0)->min_reader() == 1);
    }

    TEST_CASE("job index: without the correction its nodes have none") {
        const auto nodes = chains();
        IndexWriter writer;
        const JoinCounts counts = join(nodes, {7, false}, writer);
        REQUIRE(writer.finish({"job", "a", 7, false}, nodes, counts));
        const auto bytes = writer.take_bytes();
        const fbs::JobIndex* job = frames_of(bytes).at(0);
        CHECK_FALSE(job->corrected());
        CHECK(job->nodes()->Get(1)->clock()->offset_ns() == 0);
        CHECK(job->order_violations() == 4);
    }

    TEST_CASE("job index: a folder that is not there leaves nothing, and says so") {
        const Folder folder;
        const std::string missing = folder.path() + "/missing";
        const auto writer = IndexWriter::create(missing);
        REQUIRE_FALSE(writer);
        CHECK(writer.error().message.find(missing) != std::string::npos);
        CHECK(::access(missing.c_str(), F_OK) != 0);
    }

    TEST_CASE("job index: one that is not finished leaves nothing") {
        const Folder folder;
        { REQUIRE(IndexWriter::create(folder.path())); }
        CHECK(::access((folder.path() + "/job.rsj.partial").c_str(), F_OK) != 0);
    }
}
