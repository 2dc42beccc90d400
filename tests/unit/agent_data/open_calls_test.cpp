// What a process waits for, from its segment into the dump: hostile words, torn entries, the dead and the living.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "agent/attach/mapped_segment.hpp"
#include "tests/unit/agent_data/engine_rig.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;

namespace {

template <std::uint32_t kWords>
void put_text(schema::SourcedText<kWords>& out, const std::string& text, schema::SourceId source) {
    char bytes[kWords * 8] = {};
    text.copy(bytes, kWords * 8 - 1);
    bytes[kWords * 8 - 1] = static_cast<char>(source);
    std::memcpy(static_cast<void*>(out.words), bytes, sizeof bytes);
}

schema::OpenCallsPage& page_of(FakeSegment& segment) {
    return *segment.at<schema::OpenCallsPage>(schema::kOpenCallsOffset);
}

schema::OpenCall& put_call(FakeSegment& segment, std::uint32_t index, const char* function,
                           std::uint64_t begin) {
    schema::OpenCall& call = page_of(segment).calls[index];
    call.version = 2;
    call.owner = 77;
    call.begin = begin;
    call.group = 5;
    call.sequence = 6;
    call.peer = 3;
    call.tag = 9;
    put_text(call.function, function, schema::SourceId::kMpi);
    return call;
}

schema::GroupState& put_group(FakeSegment& segment, std::uint32_t index, const char* label) {
    schema::GroupState& state = page_of(segment).groups[index];
    state.version = 2;
    state.group = 5;
    state.size = 4;
    state.rank = 1;
    state.job_rank = 2;
    state.last = 6;
    put_text(state.label, label, schema::SourceId::kMpi);
    return state;
}

struct Opened {
    TemporaryDirectory directory;
    FakeSegment segment{directory.path(), {}};
    std::unique_ptr<MappedSegment> mapped;

    Opened() {
        const int folder = ::open(directory.path().c_str(), O_DIRECTORY | O_RDONLY);
        auto opened = MappedSegment::open(folder, directory.path(), {kForeignNamespace, 100, 1});
        ::close(folder);
        REQUIRE(opened);
        mapped = std::move(*opened);
    }
    OpenFacts read() { return mapped->open_calls(schema::TicksSource::kTsc); }
};

}  // namespace

TEST_CASE("open calls: a page that was never made real says nothing, and stays so") {
    Opened one;
    struct stat before {};
    REQUIRE(::stat(one.segment.path().c_str(), &before) == 0);
    const OpenFacts facts = one.read();
    CHECK(facts.calls.empty());
    CHECK(facts.groups.empty());
    struct stat after {};
    REQUIRE(::stat(one.segment.path().c_str(), &after) == 0);
    CHECK(before.st_blocks == after.st_blocks);
    CHECK(one.mapped->violations() == 0);
}

TEST_CASE("open calls: an entry and a group are read as they stand") {
    Opened one;
    put_call(one.segment, 39, "MPI_Recv", 1234);
    put_group(one.segment, 23, "world");
    const OpenFacts facts = one.read();
    REQUIRE(facts.calls.size() == 1);
    const OpenCallFacts& call = facts.calls[0];
    CHECK(call.tid == 77);
    CHECK(call.source == schema::SourceId::kMpi);
    CHECK(call.function == "MPI_Recv");
    CHECK(call.begin_ticks == 1234);
    CHECK(call.group == 5);
    CHECK(call.sequence == 6);
    CHECK(call.peer == 3);
    CHECK(call.tag == 9);
    REQUIRE(facts.groups.size() == 1);
    CHECK(facts.groups[0].id == 5);
    CHECK(facts.groups[0].label == "world");
    CHECK(facts.groups[0].size == 4);
    CHECK(facts.groups[0].rank == 1);
    CHECK(facts.groups[0].job_rank == 2);
    CHECK(facts.groups[0].last == 6);
    CHECK(one.mapped->violations() == 0);
}

TEST_CASE("open calls: who is in no call, or has no entry, is not told") {
    Opened one;
    put_call(one.segment, 0, "MPI_Recv", 0);
    put_call(one.segment, 1, "MPI_Recv", 1234).owner = 0;
    put_group(one.segment, 0, "world").group = 0;
    const OpenFacts facts = one.read();
    CHECK(facts.calls.empty());
    CHECK(facts.groups.empty());
    CHECK(one.mapped->violations() == 0);
}

TEST_CASE("open calls: what was left half-written, or can't be right, is left out and counted") {
    const auto violations = [](const auto& spoil) {
        Opened one;
        spoil(put_call(one.segment, 0, "MPI_Recv", 1234), put_group(one.segment, 0, "world"));
        const OpenFacts facts = one.read();
        CHECK(facts.calls.size() + facts.groups.size() == 1);
        return one.mapped->violations();
    };
    using Call = schema::OpenCall&;
    using Group = schema::GroupState&;
    CHECK(violations([](Call call, Group) { call.version = 3; }) == 1);
    CHECK(violations([](Call call, Group) { call.owner = -5; }) == 1);
    CHECK(violations([](Call call, Group) { call.begin = ~0ull; }) == 1);
    CHECK(violations([](Call call, Group) { call.peer = -9; }) == 1);
    CHECK(violations([](Call call, Group) { call.function.words[0] = 0; }) == 1);
    CHECK(violations([](Call call, Group) { call.function.words[1] = 0x0102; }) == 1);
    CHECK(violations([](Call call, Group) { call.function.words[2] = 99ull << 56; }) == 1);
    CHECK(violations([](Call, Group group) { group.version = 3; }) == 1);
    CHECK(violations([](Call, Group group) { group.size = 0; }) == 1);
    CHECK(violations([](Call, Group group) { group.rank = 4; }) == 1);
    CHECK(violations([](Call, Group group) { group.rank = -1; }) == 1);
    CHECK(violations([](Call, Group group) { group.job_rank = -2; }) == 1);
    CHECK(violations([](Call, Group group) { group.label.words[0] = 0; }) == 1);
}

TEST_CASE("open calls: a segment that was cut short has none, and nothing of it breaks") {
    Opened one;
    put_call(one.segment, 0, "MPI_Recv", 1234);
    REQUIRE(::truncate(one.segment.path().c_str(), 5000) == 0);
    CHECK(one.read().calls.empty());
}

TEST_CASE(
    "engine: a dump says what the living and the killed were in, also where nothing is recorded") {
    Node node;
    node.make_directories();
    FakeSegment alive(node.job, {.pid = 1}), killed(node.job, {.pid = 2}),
        silent(node.job, {.pid = 3});
    alive.set_level(schema::SourceId::kMpi, schema::SourceLevel::kFull, "");
    killed.set_level(schema::SourceId::kMpi, schema::SourceLevel::kFull, "");
    const std::uint64_t begin = ticks_now();
    put_call(alive, 0, "MPI_Allreduce", begin);
    put_group(alive, 0, "world");
    put_call(killed, 0, "MPI_Recv", begin);
    node.open();
    REQUIRE(node.engine->prepare(Node::request()));
    REQUIRE(node.engine->begin(0xc0ffee, node.engine->node_now()));
    killed.die(false);
    REQUIRE(eventually([&] { return node.engine->status().processes == 2; }));
    const DumpFile dump = read_dump(node.stop().path);
    REQUIRE(dump.good);
    REQUIRE(dump.footer.processes.size() == 3);
    for (const auto& end : dump.footer.processes) {
        const int pid = dump.processes[end->process].pid;
        REQUIRE(end->open_calls.size() == (pid == 3 ? 0 : 1));
        CHECK(end->groups.size() == (pid == 1 ? 1 : 0));
        if (pid == 1) {
            CHECK(end->open_calls[0]->function == "MPI_Allreduce");
            CHECK(end->open_calls[0]->begin_ticks == begin);
            CHECK(end->open_calls[0]->sequence == 6);
            CHECK(end->groups[0]->label == "world");
            CHECK(end->groups[0]->job_rank == 2);
        } else if (pid == 2) {
            CHECK(end->open_calls[0]->function == "MPI_Recv");
            CHECK(end->open_calls[0]->peer == 3);
        }
    }
}

TEST_CASE("engine: a dump whose bound has no room for it leaves what waits out") {
    Node node;
    node.make_directories();
    FakeSegment alive(node.job, {.pid = 1});
    for (std::uint32_t i = 0; i < schema::kOpenCalls; ++i)
        put_call(alive, i, "MPI_Allreduce", ticks_now());
    node.open();
    CaptureRequest request = Node::request();
    request.max_bytes = 4096;
    REQUIRE(node.engine->prepare(request));
    REQUIRE(node.engine->begin(0xc0ffee, node.engine->node_now()));
    const CaptureReport report = node.stop();
    CHECK(report.bytes <= 4096);
    CHECK(read_dump(report.path).good);
}
