// Who waits for whom, from dumps whose ends have open calls and groups.
#include <doctest/doctest.h>

#include <string>

#include "dump_maker.hpp"
#include "files.hpp"
#include "viewer_export/load/job_loader.hpp"
#include "viewer_export/model/waits.hpp"
#include "viewer_export/out/waits_view.hpp"

using namespace ringside;
using namespace ringside::viewer_export;
using model::JobWaits;
using model::Standing;

namespace {

constexpr std::uint64_t kSecondTicks = 1'000'000'000;
constexpr std::uint64_t kStop = 100 * kSecondTicks;

model::OpenCall collective(const char* function, std::uint64_t sequence, double age_s,
                           std::uint64_t group = 5) {
    model::OpenCall call;
    call.source = schema::SourceId::kTorch;
    call.function = function;
    call.begin_ticks = kStop - static_cast<std::uint64_t>(age_s * 1e9);
    call.group = group;
    call.sequence = sequence;
    return call;
}

model::OpenCall message(const char* function, std::int32_t peer, double age_s) {
    model::OpenCall call = collective(function, 0, age_s, 0);
    call.peer = peer;
    call.tag = 7;
    return call;
}

/// `ranks` processes of one node, stopped at kStop after half a second; nothing is open.
struct Ranks {
    model::Job job;

    explicit Ranks(int ranks) {
        model::Node node;
        node.name = "node1";
        node.start_ticks = kStop - kSecondTicks / 2;
        node.stop_ticks = kStop;
        job.nodes.push_back(node);
        for (int rank = 0; rank < ranks; ++rank) {
            model::Process process;
            process.pid = 100 + rank;
            process.rank = rank;
            process.ended = true;
            process.end_ticks = kStop;
            job.processes.push_back(process);
        }
    }
    /// All of them are in the group, and have begun `last` in it.
    void group(std::uint64_t last, std::uint32_t size = 0, std::uint64_t id = 5) {
        for (auto& process : job.processes) {
            process.groups.push_back(
                {id, schema::SourceId::kTorch, "0",
                 size != 0 ? size : static_cast<std::uint32_t>(job.processes.size()), process.rank,
                 process.rank, last});
        }
    }
    void open(int rank, const model::OpenCall& call) {
        auto& process = job.processes[static_cast<std::size_t>(rank)];
        process.open_calls.push_back(call);
        if (call.sequence != 0)
            for (auto& group : process.groups)
                if (group.id == call.group) group.last = call.sequence;
    }
    JobWaits waits() const { return model::waits_of(job); }
    std::string text() const { return render_waits(job, waits()); }
};

}  // namespace

TEST_CASE("waits: a healthy job's calls of microseconds are none") {
    Ranks ranks(4);
    ranks.group(56);
    for (int rank = 0; rank < 4; ++rank) ranks.open(rank, collective("gloo:all_reduce", 57, 0.9));
    CHECK(ranks.waits().empty());
    CHECK(ranks.text().empty());
}

TEST_CASE("waits: a capture that is older than the hang shows it") {
    Ranks ranks(2);
    ranks.group(56);
    ranks.job.nodes[0].start_ticks = kStop - 60 * kSecondTicks;
    ranks.open(0, collective("gloo:all_reduce", 57, 9));
    CHECK(ranks.waits().waits.size() == 1);
}

TEST_CASE("waits: who has come late is in it; who has begun it and waits elsewhere is not away") {
    Ranks ranks(4);
    ranks.group(56);
    ranks.open(0, collective("MPI_Allreduce", 57, 100));
    ranks.open(1, collective("MPI_Allreduce", 57, 0.3));
    for (auto& group : ranks.job.processes[2].groups) group.last = 57;
    const JobWaits waits = ranks.waits();
    REQUIRE(waits.waits.size() == 1);
    REQUIRE(waits.waits[0].others.size() == 3);
    CHECK(waits.waits[0].others[0].standing == Standing::kInIt);
    CHECK(waits.waits[0].others[1].standing == Standing::kPassed);
    REQUIRE(waits.never_came.size() == 1);
    CHECK(waits.never_came[0].process == 3);
    const std::string text = ranks.text();
    CHECK(text.find("; rank 1 (in it for 0.3 s, pid 101 on node1); rank 2 (it has begun it, and is "
                    "not seen in it, pid 102 on node1); rank 3 never came") != std::string::npos);
}

TEST_CASE("waits: whoever calls another function in a collective is named") {
    Ranks ranks(3);
    ranks.group(6);
    ranks.open(0, collective("MPI_Allreduce", 7, 300));
    ranks.open(1, collective("MPI_Allreduce", 7, 300));
    ranks.open(2, collective("MPI_Bcast", 7, 300));
    CHECK(ranks.text().find("ranks 0, 1, 2 for 300.0 s; rank 2 is in MPI_Bcast\n") !=
          std::string::npos);
}

TEST_CASE("waits: of two jobs' processes of one rank the one in the group is meant") {
    Ranks ranks(4);
    ranks.group(0);
    for (const std::size_t other : {2, 3}) {
        ranks.job.processes[other].groups[0].id = 6;
        ranks.job.processes[other].groups[0].job_rank = static_cast<std::int32_t>(other) - 2;
    }
    model::OpenCall call = message("MPI_Recv", 1, 20);
    call.group = 6;
    ranks.open(2, call);
    const JobWaits waits = ranks.waits();
    REQUIRE(waits.waits[0].others.size() == 1);
    CHECK(waits.waits[0].others[0].process == 3);
}

TEST_CASE("waits: who never came to a collective is named, with what its last was") {
    Ranks ranks(4);
    ranks.group(56);
    for (const int rank : {3, 0, 1}) ranks.open(rank, collective("gloo:all_reduce", 57, 42.1));
    const JobWaits waits = ranks.waits();
    REQUIRE(waits.waits.size() == 1);
    const model::Wait& wait = waits.waits[0];
    CHECK(wait.function == "gloo:all_reduce");
    CHECK(wait.label == "0");
    CHECK(wait.size == 4);
    REQUIRE(wait.waiting.size() == 3);
    CHECK(wait.waiting[2].process == 3);
    CHECK(wait.waiting[2].age_ns == doctest::Approx(42.1e9));
    REQUIRE(wait.others.size() == 1);
    CHECK(wait.others[0].standing == Standing::kFree);
    CHECK(wait.others[0].process == 2);
    CHECK(wait.others[0].last == 56);
    CHECK(waits.cycles.empty());
    REQUIRE(waits.never_came.size() == 1);
    CHECK(waits.never_came[0].process == 2);
    CHECK(ranks.text() ==
          "waiting: gloo:all_reduce #57 of group 0 (4 members): ranks 0, 1, 3 for 42.1 s; rank 2 "
          "never came (its last was #56; it is alive, pid 102 on node1, in no call that we see)\n"
          "waited for, and in no call that we see: rank 2\n"
          "(calls that were open for more than 1.0 s at the capture's end)\n");
}

TEST_CASE("waits: a member that died, and one that is nowhere to be seen") {
    Ranks ranks(3);
    ranks.group(56, 4);
    ranks.open(0, collective("gloo:all_reduce", 57, 5));
    ranks.open(1, collective("gloo:all_reduce", 57, 6));
    ranks.job.processes[2].fate = model::Fate::kKilled;
    const JobWaits waits = ranks.waits();
    REQUIRE(waits.waits.size() == 1);
    REQUIRE(waits.waits[0].others.size() == 2);
    CHECK(waits.waits[0].others[0].standing == Standing::kDied);
    CHECK(waits.waits[0].others[1].standing == Standing::kNotSeen);
    CHECK(waits.waits[0].others[1].member == 3);
    // Of who is not in the capture nobody knows.
    CHECK(waits.never_came.size() == 1);
    CHECK(ranks.text().find("ranks 0, 1 for 5.0 to 6.0 s; rank 2 never came (its last was #56; it "
                            "died, pid 102 on node1); member 3 (not in this capture: unknown)") !=
          std::string::npos);
}

TEST_CASE("waits: what the dead were in keeps nobody waiting, and is told of who was killed") {
    Ranks ranks(3);
    ranks.group(56);
    ranks.open(0, message("MPI_Recv", 1, 50));
    ranks.open(1, collective("gloo:all_reduce", 57, 0.01));
    ranks.open(1, collective("gloo:broadcast", 56, 0.2));
    ranks.open(2, message("MPI_Recv", 1, 50));
    ranks.job.processes[0].fate = model::Fate::kKilled;
    ranks.job.processes[1].fate = model::Fate::kKilled;
    ranks.job.processes[2].fate = model::Fate::kExited;
    CHECK(ranks.waits().waits.empty());
    CHECK(ranks.waits().died.size() == 2);
    CHECK(ranks.text() ==
          "killed: rank 0 (pid 100 on node1) in MPI_Recv from rank 1 with tag 7, in it for 50.0 s\n"
          "killed: rank 1 (pid 101 on node1) in gloo:broadcast #56 of group 0, in it for 0.2 s\n");
}

TEST_CASE("waits: ranks in different collectives of one group wait in a circle") {
    Ranks ranks(2);
    ranks.group(0);
    ranks.open(0, collective("gloo:all_reduce", 8, 20));
    ranks.open(1, collective("gloo:barrier", 7, 21));
    const JobWaits waits = ranks.waits();
    REQUIRE(waits.waits.size() == 2);
    CHECK(waits.waits[0].sequence == 7);
    REQUIRE(waits.waits[0].others.size() == 1);
    // It has been in #7 and left it, so nobody waits for it there.
    CHECK(waits.waits[0].others[0].standing == Standing::kPassed);
    REQUIRE(waits.waits[1].others.size() == 1);
    CHECK(waits.waits[1].others[0].standing == Standing::kElsewhere);
    CHECK(waits.waits[1].others[0].call.function == "gloo:barrier");
    CHECK(waits.cycles.empty());
    CHECK(waits.never_came.empty());
}

TEST_CASE("waits: two that receive from each other are a circle") {
    Ranks ranks(3);
    ranks.open(0, message("MPI_Recv", 1, 20));
    ranks.open(1, message("MPI_Recv", 0, 21));
    ranks.open(2, message("MPI_Ssend", 0, 5));
    const JobWaits waits = ranks.waits();
    CHECK(waits.waits.size() == 3);
    REQUIRE(waits.cycles.size() == 1);
    CHECK(waits.cycles[0] == std::vector<model::Index>{0, 1});
    CHECK(waits.never_came.empty());
    const std::string text = ranks.text();
    CHECK(text.find("waiting in a circle: rank 0 waits for rank 1 waits for rank 0\n") !=
          std::string::npos);
    CHECK(text.find("waiting: MPI_Ssend to rank 0 with tag 7: rank 2 (pid 102 on node1) for 5.0 s; "
                    "rank 0 (it is in MPI_Recv from rank 1 with tag 7 for 20.0 s, pid 100 on "
                    "node1)\n") != std::string::npos);
}

TEST_CASE("waits: a circle over a collective and a message") {
    Ranks ranks(3);
    ranks.group(3);
    ranks.open(0, collective("MPI_Allreduce", 4, 30));
    ranks.open(2, collective("MPI_Allreduce", 4, 30));
    ranks.open(1, message("MPI_Recv", 2, 29));
    const JobWaits waits = ranks.waits();
    REQUIRE(waits.cycles.size() == 1);
    CHECK(waits.cycles[0] == std::vector<model::Index>{1, 2});
}

TEST_CASE("waits: a receive tells whether its peer lives, and what it does") {
    Ranks ranks(2);
    ranks.open(0, message("MPI_Recv", 1, 20));
    JobWaits waits = ranks.waits();
    REQUIRE(waits.waits[0].others.size() == 1);
    CHECK(waits.waits[0].others[0].standing == Standing::kFree);
    REQUIRE(waits.never_came.size() == 1);
    ranks.job.processes[1].fate = model::Fate::kExited;
    CHECK(ranks.waits().waits[0].others[0].standing == Standing::kDied);
    ranks.job.processes.pop_back();
    waits = ranks.waits();
    CHECK(waits.waits[0].others[0].standing == Standing::kNotSeen);
    CHECK(render_waits(ranks.job, waits).find("; rank 1 (not in this capture: unknown)\n") !=
          std::string::npos);
}

TEST_CASE("waits: from any rank, and from nobody in particular, names no other") {
    Ranks ranks(2);
    ranks.open(0, message("MPI_Recv", schema::kAnyPeer, 20));
    ranks.open(1, message("MPI_Waitall", schema::kNoPeer, 21));
    const JobWaits waits = ranks.waits();
    REQUIRE(waits.waits.size() == 2);
    CHECK(waits.waits[0].others.empty());
    CHECK(waits.waits[1].others.empty());
    CHECK(waits.never_came.empty());
    CHECK(ranks.text().find("waiting: MPI_Recv from any rank with tag 7: rank 0") !=
          std::string::npos);
}

TEST_CASE("waits: a group's own word of the rank goes before the launcher's") {
    Ranks ranks(2);
    ranks.group(0);
    ranks.job.processes[0].rank = ranks.job.processes[1].rank = 0;
    CHECK(model::job_rank_of(ranks.job.processes[1]) == 1);
}

TEST_CASE("waits: texts of a hostile dump stay one line") {
    Ranks ranks(1);
    ranks.group(0, 2);
    ranks.job.processes[0].groups[0].label = "a\nb\xff";
    ranks.open(0, collective("c\x1b[2J", 1, 9));
    const std::string text = ranks.text();
    CHECK(text.find('\x1b') == std::string::npos);
    CHECK(text.find("a?b") != std::string::npos);
}

TEST_CASE("waits: a group of a size that nobody has is told in a line") {
    Ranks ranks(1);
    ranks.group(0, 0xffffffffu);
    ranks.open(0, collective("gloo:barrier", 1, 9));
    const std::string text = ranks.text();
    CHECK(text.size() < 2000);
    CHECK(text.find(" more") != std::string::npos);
}

TEST_CASE("waits: what a dump's footer says is loaded, with and without its events") {
    tests::TemporaryDirectory directory;
    tests::DumpMaker dump("node1");
    dump.process(0, 4711, 2);
    dump.lane(0, 0, 77).range("a", 1, 2);
    dump.end(0, fbs::Fate::Running, kStop);
    fbs::OpenCallT call;
    call.tid = 77;
    call.source = 1;
    call.function = "gloo:barrier";
    call.begin_ticks = kStop - 5 * kSecondTicks;
    call.group = 5;
    call.sequence = 9;
    fbs::GroupT group;
    group.id = 5;
    group.source = 1;
    group.label = "0";
    group.size = 2;
    group.rank = 1;
    group.job_rank = 1;
    group.last = 9;
    dump.waits(call, group);
    dump.footer(kStop);
    dump.write(directory.path() / "node1.rsd");
    const auto whole = load_job({.inputs = {directory.path()}});
    const auto processes = load_processes({directory.path()});
    REQUIRE(whole);
    REQUIRE(processes);
    for (const model::Job* job : {&*whole, &*processes}) {
        const JobWaits waits = model::waits_of(*job);
        REQUIRE(waits.waits.size() == 1);
        CHECK(waits.waits[0].function == "gloo:barrier");
        REQUIRE(waits.waits[0].others.size() == 1);
        CHECK(waits.waits[0].others[0].member == 0);
    }
    CHECK(whole->totals.records == 1);
    CHECK(processes->totals.records == 0);
}
