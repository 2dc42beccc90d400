// Parents, trace ids, and the job index that carries them.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "agent/correlate/job_writer.hpp"
#include "agent/correlate/join.hpp"
#include "folder.hpp"
#include "halves.hpp"
#include "schema/frame.hpp"
#include "schema/job_generated.h"

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

std::vector<std::uint8_t> read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("tree: parents over three nodes, one trace id a tree") {
        const auto nodes = chains();
        const JoinResult result = join(nodes, {7, true});
        REQUIRE(result.calls.size() == 4);
        for (const std::size_t root : {0, 2}) {
            CHECK(result.calls[root].parent == -1);
            CHECK(result.calls[root + 1].parent == static_cast<int>(root));
            CHECK(result.calls[root].trace == result.calls[root + 1].trace);
            CHECK(result.calls[root].trace.valid());
        }
        CHECK(result.calls[0].trace != result.calls[2].trace);
        CHECK(join(nodes, {8, true}).calls[0].trace != result.calls[0].trace);
    }

    TEST_CASE("tree: a wire's own trace id is kept, and its children's") {
        auto nodes = chains();
        nodes[0].halves[0].id.trace = nodes[1].halves[0].id.trace = {11, 12};
        const JoinResult result = join(nodes, {7, true});
        CHECK(result.calls[0].state == RpcState::kJoined);
        CHECK(result.calls[0].trace == ringside::schema::TraceId{11, 12});
        CHECK(result.calls[1].trace == ringside::schema::TraceId{11, 12});
    }

    TEST_CASE("tree: a parent that is cut is a parent all the same") {
        auto nodes = chains();
        nodes[0].halves.clear();
        const JoinResult result = join(nodes, {7, true});
        REQUIRE(result.calls.size() == 4);
        CHECK_FALSE(result.calls[0].client);
        CHECK(result.calls[1].parent == 0);
        CHECK(result.calls[1].trace == result.calls[0].trace);
    }

    TEST_CASE("tree: a chain that bites its own tail is opened") {
        std::vector<NodeCapture> nodes{node("a")};
        nodes[0].processes.push_back(process(0, {"worker0"}));
        for (std::uint64_t i = 0; i < 3; ++i) {
            nodes[0].halves.push_back(client("worker0", "worker0", i, 10 * kMs, 20 * kMs));
            nodes[0].halves.push_back(server("worker0", "worker0", i, 11 * kMs, 19 * kMs));
            nodes[0].halves[2 * i + 1].key = i + 1;
            nodes[0].halves[2 * i].parent_key = (i + 1) % 3 + 1;
        }
        const JoinResult result = join(nodes, {7, true});
        REQUIRE(result.calls.size() == 3);
        int roots = 0;
        for (const Call& call : result.calls) {
            roots += call.parent == -1 ? 1 : 0;
            CHECK(call.trace == result.calls[0].trace);
        }
        CHECK(roots == 1);
    }

    TEST_CASE("job index: verifies, and says what the join found") {
        const Folder folder;
        auto nodes = chains();
        nodes[1].dump = "b.rsd";
        nodes[2].error = "lost on the way";
        nodes[0].halves.push_back(client("worker0", "elsewhere", 9, 10 * kMs, 20 * kMs));
        const JoinResult result = join(nodes, {7, true});
        const auto index = build_job_index({"job", "a", 7, true}, nodes, result);
        REQUIRE(index);
        const auto path = write_job_index(folder.path(), *index);
        REQUIRE(path);
        CHECK(*path == folder.path() + "/job.rsj");
        CHECK(::access((*path + ".partial").c_str(), F_OK) != 0);

        const auto file = read_file(*path);
        ringside::schema::FrameHeader frame{};
        REQUIRE(file.size() > sizeof frame);
        CHECK(file.size() % 8 == 0);
        std::memcpy(&frame, file.data(), sizeof frame);
        CHECK(frame.magic == ringside::schema::kJobFrameMagic);
        REQUIRE(frame.length == index->size());
        const std::uint8_t* body = file.data() + sizeof frame;
        CHECK(frame.checksum == XXH3_64bits(body, frame.length));
        flatbuffers::Verifier verifier(body, frame.length);
        REQUIRE(fbs::VerifyJobIndexBuffer(verifier));

        const fbs::JobIndex* job = fbs::GetJobIndex(body);
        CHECK(job->nodes()->size() == 3);
        CHECK(job->nodes()->Get(1)->clock()->offset_ns() == -1000 * kMs);
        CHECK(job->nodes()->Get(1)->dump()->str() == "b.rsd");
        CHECK(job->nodes()->Get(2)->error()->str() == "lost on the way");
        CHECK(job->verdicts()->size() == 3);
        CHECK(job->rpcs()->size() == result.calls.size());
        CHECK(job->joined_requests() == 4);
        CHECK(job->cut() == 1);
        for (std::uint32_t i = 0; i < job->rpcs()->size(); ++i) {
            const fbs::Rpc* rpc = job->rpcs()->Get(i);
            CHECK(rpc->parent() == result.calls[i].parent);
            CHECK((rpc->server() != nullptr) == result.calls[i].server.has_value());
            CHECK(rpc->client_begin_ns() == result.calls[i].client_begin_ns);
            CHECK(rpc->reply() == result.calls[i].reply);
        }
    }

    TEST_CASE("job index: without the correction its nodes have none") {
        const auto nodes = chains();
        const auto index = build_job_index({"job", "a", 7, false}, nodes, join(nodes, {7, false}));
        REQUIRE(index);
        const fbs::JobIndex* job = fbs::GetJobIndex(index->data());
        CHECK_FALSE(job->corrected());
        CHECK(job->nodes()->Get(1)->clock()->offset_ns() == 0);
        CHECK(job->order_violations() == 4);
    }

    TEST_CASE("job index: a folder that is not there leaves nothing, and says so") {
        const Folder folder;
        const std::string missing = folder.path() + "/missing";
        const auto path = write_job_index(missing, std::vector<std::uint8_t>(16));
        REQUIRE_FALSE(path);
        CHECK(path.error().message.find(missing) != std::string::npos);
        CHECK(::access(missing.c_str(), F_OK) != 0);
    }
}
