// Whom a request means: by what, how many, who comes late, and what is said where nobody is there.
#include "agent/capture/selection.hpp"

#include <doctest/doctest.h>

#include <cstring>

#include "tests/unit/agent_data/engine_rig.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;

namespace {

using There = std::vector<std::pair<schema::SegmentId, Candidate>>;

schema::SegmentId id_of(std::uint32_t pid) {
    return {kForeignNamespace, pid, 1};
}

Candidate process(int pid, int rank, bool has_framework) {
    return {pid, 0, rank, "/usr/bin/python3", has_framework};
}

/// A process that the agent does not see before it is made.
SegmentSpec spec(std::uint32_t pid) {
    return {.pid = pid, .ready = false};
}

void make(FakeSegment& segment, int rank, const char* executable) {
    segment.header()->rank = rank;
    std::strcpy(segment.header()->executable, executable);
    segment.header()->state.store(static_cast<std::uint32_t>(schema::SegmentState::kReady));
}

/// A torch process of a rank, as its shim would tell it.
void make_rank(FakeSegment& segment, int rank) {
    segment.set_level(schema::SourceId::kTorch, schema::SourceLevel::kOff, "");
    make(segment, rank, "/opt/python3.11");
}

std::vector<int> pids_of(const CaptureReport& report) {
    std::vector<int> pids;
    for (const ProcessReport& one : report.processes) pids.push_back(one.pid);
    std::sort(pids.begin(), pids.end());
    return pids;
}

}  // namespace

TEST_CASE("selection: the lists combine by AND, an empty one means all") {
    const Candidate python{12, 4012, 3, "/usr/bin/python3", true};
    CHECK(Selection{}.fits(python));
    CHECK_FALSE(Selection{}.selects_some());
    CHECK(Selection{{7, 12}, {}, {}}.fits(python));
    CHECK(Selection{{4012}, {}, {}}.fits(python));
    CHECK_FALSE(Selection{{13}, {}, {}}.fits(python));
    CHECK(Selection{{12}, {3}, {"python3"}}.fits(python));
    CHECK(Selection{{}, {}, {"sh", "/usr/bin/python3"}}.fits(python));
    CHECK_FALSE(Selection{{}, {}, {"bin/python3"}}.fits(python));
    CHECK_FALSE(Selection{{}, {}, {"python"}}.fits(python));
    CHECK_FALSE(Selection{{12}, {4}, {"python3"}}.fits(python));
    // A host's pid that nobody knows is no pid.
    CHECK_FALSE(Selection{{0}, {}, {}}.fits({12, 0, -1, "", false}));
    CHECK(Selection{{1, 2}, {0}, {"sh"}}.text() == "with pid 1, 2, of rank 0, of executable sh");
}

TEST_CASE("selection: a limit takes who has a framework first, then by rank, then by pid") {
    Choice choice({{}, {}, {}, 3});
    const There there = {{id_of(5), process(5, -1, true)},  {id_of(4), process(4, 9, true)},
                         {id_of(3), process(3, 0, false)},  {id_of(2), process(2, 1, true)},
                         {id_of(1), process(1, -1, false)}, {id_of(6), process(6, 1, true)}};
    CHECK_FALSE(choice.means(id_of(2), there[3].second));
    choice.decide(there);
    for (const auto& [id, candidate] : there) {
        const bool taken = id.pid == 2 || id.pid == 6 || id.pid == 4;
        CHECK(choice.means(id, candidate) == taken);
    }
    CHECK(choice.left_out() == 1);
    CHECK_FALSE(choice.means(id_of(7), process(7, 0, true)));
}

TEST_CASE("selection: what is beyond those with a framework goes to the others") {
    Choice choice({{}, {}, {}, 2});
    const There there = {{id_of(1), process(1, 0, false)}, {id_of(2), process(2, 1, true)}};
    choice.decide(there);
    CHECK(choice.means(id_of(1), there[0].second));
    CHECK(choice.means(id_of(2), there[1].second));
    CHECK(choice.left_out() == 0);
}

TEST_CASE("engine: ranks and executables choose processes; the others' shims are left alone") {
    Node node;
    node.open();
    FakeSegment one(node.job, spec(1)), two(node.job, spec(2)), shell(node.job, spec(3));
    make_rank(one, 0);
    make_rank(two, 1);
    make(shell, 1, "/bin/sh");
    const FakeShim first(node.job, one), second(node.job, two);
    REQUIRE(node.sees(3));
    CaptureRequest request = Node::request();
    request.selection.ranks = {1};
    request.selection.executables = {"python3.11"};
    REQUIRE(node.engine->prepare(request));
    CHECK(one.header()->selected.load() == 0);
    CHECK(two.header()->selected.load() == 1);
    CHECK(shell.header()->selected.load() == 0);
    CHECK(pids_of(node.stop()) == std::vector<int>{2});
}

TEST_CASE("engine: a limit keeps the lowest ranks, and says how many it has left out") {
    Node node;
    node.open();
    FakeSegment two(node.job, spec(1)), zero(node.job, spec(2)), one(node.job, spec(3)),
        shell(node.job, spec(4));
    make_rank(two, 2);
    make_rank(zero, 0);
    make_rank(one, 1);
    make(shell, 0, "/bin/sh");
    REQUIRE(node.sees(4));
    CaptureRequest request = Node::request();
    request.selection.limit = 2;
    request.attach_timeout = {1'000'000};
    REQUIRE(node.engine->prepare(request));
    const CaptureReport report = node.stop();
    CHECK(pids_of(report) == std::vector<int>{2, 3});
    CHECK(report.left_out == 1);
}

TEST_CASE("engine: a child of one that a limit has chosen is not chosen, whatever it has of it") {
    Node node;
    node.open();
    FakeSegment one(node.job, spec(1));
    make_rank(one, 0);
    const FakeShim shim(node.job, one);
    REQUIRE(node.sees(1));
    CaptureRequest request = Node::request();
    request.selection.limit = 1;
    REQUIRE(node.engine->prepare(request));
    FakeSegment child(node.job, spec(2));
    child.header()->selected = 1;
    make_rank(child, 0);
    REQUIRE(node.sees(2));
    CHECK(eventually([&] { return child.header()->selected.load() == 0; }));
    CHECK(one.header()->selected.load() == 1);
    CHECK(pids_of(node.stop()) == std::vector<int>{1});
}

TEST_CASE("engine: who was in a capture of chosen ones that a next agent ends has not come late") {
    Node node;
    node.open();
    FakeSegment one(node.job, spec(1));
    make_rank(one, 0);
    const FakeShim shim(node.job, one);
    REQUIRE(node.sees(1));
    CaptureRequest request = Node::request();
    request.selection.ranks = {0};
    REQUIRE(node.engine->prepare(request));
    REQUIRE(node.engine->begin(request.id, node.engine->node_now()));
    node.engine.reset();
    node.open();
    REQUIRE(node.engine->recovered());
    REQUIRE(node.engine->recovered()->processes.size() == 1);
    CHECK(node.engine->recovered()->processes[0].reason.find("it came during") ==
          std::string::npos);
}

TEST_CASE("engine: nobody of a rank or executable is an error that says which there are") {
    Node node;
    node.open();
    FakeSegment one(node.job, spec(1));
    make_rank(one, 3);
    REQUIRE(node.sees(1));
    CaptureRequest request = Node::request();
    request.selection.ranks = {4};
    request.selection.executables = {"ruby"};
    const auto none = node.engine->prepare(request);
    REQUIRE_FALSE(none);
    CHECK(none.error().code == schema::ErrorCode::kNothingMatched);
    CHECK(none.error().message.find("no process of rank 4, of executable ruby") !=
          std::string::npos);
    CHECK(none.error().message.find("there are ranks 3 and executables python3.11") !=
          std::string::npos);
    CHECK_FALSE(node.engine->status().capturing);
}

TEST_CASE("engine: who comes into a capture of chosen ones is flagged, and its verdict says so") {
    Node node;
    node.open();
    FakeSegment one(node.job, spec(1));
    make_rank(one, 0);
    const FakeShim shim(node.job, one);
    REQUIRE(node.sees(1));
    CaptureRequest request = Node::request();
    request.selection.ranks = {0};
    REQUIRE(node.engine->prepare(request));
    REQUIRE(node.engine->begin(request.id, node.engine->node_now()));
    FakeSegment child(node.job, spec(2)), other(node.job, spec(3));
    make_rank(child, 0);
    make_rank(other, 1);
    const FakeShim shim_of_child(node.job, child);
    CHECK(eventually([&] { return child.header()->selected.load() == 1; }));
    REQUIRE(node.sees(3));
    CHECK(other.header()->selected.load() == 0);
    const CaptureReport report = node.stop();
    REQUIRE(report.processes.size() == 2);
    CHECK(report.processes[0].reason.empty());
    CHECK(report.processes[1].pid == 2);
    CHECK(report.processes[1].reason.find("it came during a capture") != std::string::npos);
}

TEST_CASE("selection: who has a framework and a place keeps it; one without gives way") {
    Choice choice({{}, {}, {}, 1});
    const auto shell = std::pair(id_of(1), process(1, 0, false));
    const auto python = std::pair(id_of(2), process(2, 5, true));
    const auto earlier_rank = std::pair(id_of(3), process(3, 0, true));
    choice.decide(There{shell});
    CHECK(choice.means(shell.first, shell.second));
    choice.decide(There{shell, python});
    CHECK(choice.means(python.first, python.second));
    CHECK_FALSE(choice.means(shell.first, shell.second));
    CHECK(choice.left_out() == 0);
    for (int round = 0; round < 2; ++round) {
        choice.decide(There{shell, earlier_rank, python});
        CHECK(choice.means(python.first, python.second));
        CHECK(choice.left_out() == 1);
    }
}

TEST_CASE("engine: a limit's place is for who finds a framework, whenever it comes") {
    Node node;
    node.open();
    FakeSegment shell(node.job, spec(1));
    make(shell, 0, "/bin/sh");
    REQUIRE(node.sees(1));
    CaptureRequest request = Node::request();
    request.selection.limit = 1;
    REQUIRE(node.engine->prepare(request));
    CHECK(shell.header()->selected.load() == 1);
    REQUIRE(node.engine->begin(request.id, node.engine->node_now()));
    // It comes without one, and has to wait for it; then the shell gives its place away.
    FakeSegment python(node.job, spec(2)), second(node.job, spec(3));
    make(python, 3, "/opt/python3.11");
    const FakeShim shim(node.job, python);
    REQUIRE(node.sees(2));
    CHECK(python.header()->selected.load() == 0);
    python.set_level(schema::SourceId::kTorch, schema::SourceLevel::kFull, "");
    CHECK(eventually([&] { return python.header()->selected.load() == 1; }));
    CHECK(shell.header()->selected.load() == 0);
    make_rank(second, 0);
    REQUIRE(node.sees(3));
    CHECK(eventually([&] { return node.engine->status().processes == 3; }));
    const CaptureReport report = node.stop();
    CHECK(pids_of(report) == std::vector<int>{1, 2});
    CHECK(report.left_out == 1);
    CHECK(second.header()->selected.load() == 0);
    for (const ProcessReport& one : report.processes) {
        CHECK(one.verdict == (one.pid == 2 ? Verdict::kCaptured : Verdict::kNothingRecorded));
    }
}

TEST_CASE(
    "engine: one that finds a framework when a limit's places are taken is left out, and counted") {
    Node node;
    node.open();
    FakeSegment first(node.job, spec(1)), late(node.job, spec(2));
    make(first, 0, "/opt/python3.11");
    make(late, 1, "/opt/python3.11");
    REQUIRE(node.sees(2));
    CaptureRequest request = Node::request();
    request.selection.limit = 1;
    REQUIRE(node.engine->prepare(request));
    CHECK(first.header()->selected.load() == 1);
    late.set_level(schema::SourceId::kTorch, schema::SourceLevel::kOff, "");
    CHECK(eventually([&] { return late.header()->selected.load() == 1; }));
    first.set_level(schema::SourceId::kTorch, schema::SourceLevel::kOff, "");
    const CaptureReport report = node.stop();
    CHECK(pids_of(report) == std::vector<int>{2});
    CHECK(report.left_out == 1);
}
