// From chunks to a model: pairs, requests, ends, joins, clocks, duplicates.
#include <doctest/doctest.h>

#include <algorithm>

#include "sample_job.hpp"
#include "viewer_export/model/rpc_tree.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export;
using namespace ringside::viewer_export::model;
namespace fbs = ringside::fbs;
using ringside::schema::RecordKind;
using ringside::schema::RpcMode;
using ringside::schema::RpcStatus;

namespace {

/// One dump with one process and one lane.
struct OneLane {
    OneLane() : dump("alpha") {
        dump.process(0, 4000, 0, "worker0", 0);
        lane = &dump.lane(0, 0, 100);
    }
    Job load(fbs::Fate fate = fbs::Fate::Running, std::uint64_t end_ticks = 1000) {
        dump.end(0, fate, end_ticks);
        dump.footer(1000);
        dump.write(directory / "alpha.rsd");
        return loaded(directory.path());
    }
    TemporaryDirectory directory;
    DumpMaker dump;
    LaneMaker* lane;
};

std::string request_of(const RpcNames& names, Index request) {
    if (request == kNone) return "none";
    if (request == kUnknownRequest) return "unknown";
    return names.text(names.chain_of_half(request));
}

}  // namespace

TEST_CASE("load: ranges come by begin, outer before inner, in nanoseconds of the node") {
    OneLane one;
    one.lane->range("inner", 20, 30);
    one.lane->range("outer", 20, 40);
    one.lane->op("first", 10, 15, 3, 1);
    const Job job = one.load();
    REQUIRE(job.lanes.size() == 1);
    const auto& ranges = job.lanes[0].ranges;
    REQUIRE(ranges.size() == 3);
    CHECK(job.names[ranges[0].name] == "first");
    CHECK(ranges[0].is_operator);
    CHECK(ranges[0].argument == 3);
    CHECK(ranges[0].begin_ns == kEpochNs + 10);
    CHECK(job.names[ranges[1].name] == "outer");
    CHECK(job.names[ranges[2].name] == "inner");
    CHECK(job.totals.events == 3);
    CHECK(job.damage.empty());
    CHECK_FALSE(job.corrected);
}

TEST_CASE("load: async begins and ends meet by key on any lane, also when the end is read first") {
    OneLane one;
    LaneMaker& other = one.dump.lane(0, 1, 101);
    one.lane->async_end(300, 9);
    one.lane->flush();
    other.async_begin("a", 100, 9);
    other.async_begin("never", 150, 10);
    other.async_end(90, 11);
    const Job job = one.load();
    REQUIRE(job.asyncs.size() == 2);
    CHECK(job.asyncs[0].duration_ns() == 200);
    CHECK(job.asyncs[0].end == End::kEnded);
    CHECK(job.asyncs[1].end == End::kOpen);
    CHECK(job.asyncs[1].end_ns == kEpochNs + 1000);  // the capture's stop
    CHECK(job.totals.ends_without_begin == 1);
    CHECK(job.totals.events == 2);
}

TEST_CASE("load: a key that comes twice pairs each begin with the next end") {
    OneLane one;
    one.lane->async_begin("a", 100, 9);
    one.lane->async_end(110, 9);
    one.lane->async_begin("a", 200, 9);
    one.lane->async_end(250, 9);
    const Job job = one.load();
    REQUIRE(job.asyncs.size() == 2);
    CHECK(job.asyncs[0].duration_ns() == 10);
    CHECK(job.asyncs[1].duration_ns() == 50);
}

TEST_CASE("load: events belong to the request that their lane served at their begin") {
    OneLane one;
    one.lane->range("before", 10, 20);
    one.lane->rpc_begin(30, {true, 1, 77, 0, "f", "", "worker0", "worker1"});
    one.lane->serve(40, 1);
    one.lane->range("inside", 50, 60);
    one.lane->range("around", 25, 65);
    one.lane->value(RecordKind::kMark, "mark", 66, 1);
    one.lane->stop_serving(70);
    one.lane->range("after", 80, 90);
    const Job job = one.load();
    const RpcNames names(job);
    std::map<std::string, std::string> requests;
    for (const Range& range : job.lanes[0].ranges)
        requests[job.names[range.name]] = request_of(names, range.request);
    CHECK(requests["before"] == "none");
    CHECK(requests["inside"] == "rpc#f(worker1 -> worker0)");
    CHECK(requests["around"] == "none");
    CHECK(requests["after"] == "none");
    CHECK(request_of(names, job.values.at(0).request) == "rpc#f(worker1 -> worker0)");
}

TEST_CASE("load: after a drop the request is unknown until the lane says it again") {
    OneLane one;
    one.lane->range("known", 10, 20);
    one.lane->serve(100, 5, true);
    one.lane->range("lost", 50, 110);
    one.lane->range("served", 105, 109);
    const Job job = one.load();
    const auto& ranges = job.lanes[0].ranges;
    CHECK(ranges[0].request == kNone);
    CHECK(ranges[1].request == kUnknownRequest);
    CHECK(ranges[2].request < job.halves.size());
}

TEST_CASE("load: a request whose begin lies before the capture still gives its events a place") {
    OneLane one;
    one.lane->context(42);
    one.lane->range("served", 10, 20);
    one.lane->rpc_begin(30, {false, 7, 78, 42, "g", "", "worker0", "worker2", RpcMode::kAsync});
    one.lane->rpc_end(40, 7);
    one.lane->rpc_end(50, 42);
    const Job job = one.load();
    const RpcNames names(job);
    CHECK(request_of(names, job.lanes[0].ranges[0].request) == "rpc#?(? -> worker0)");
    CHECK(names.text(names.chain(job.halves[0].call)) ==
          "rpc#?(? -> worker0)#remote_op: rpc_async#g(worker0 -> worker2)");
    CHECK(job.totals.events == 2);
    CHECK(job.totals.ends_without_begin == 1);
    CHECK(job.totals.cut == 0);  // it is no record: nobody counts it
}

TEST_CASE("load: an open range lasts to the capture's stop, in a killed process to its death") {
    OneLane alive;
    alive.lane->range("done", 10, 20);
    alive.lane->open("going on", 50);
    alive.lane->open("done", 10);  // ended since: a record has it
    const Job running = alive.load(fbs::Fate::Running, 1000);
    REQUIRE(running.lanes[0].ranges.size() == 2);
    CHECK(running.lanes[0].ranges[1].end == End::kOpen);
    CHECK(running.lanes[0].ranges[1].end_ns == kEpochNs + 1000);
    CHECK(running.totals.open == 1);

    OneLane dead;
    dead.lane->open("cut short", 50);
    dead.lane->rpc_begin(60, {true, 1, 77, 0, "f", "", "worker0", "worker1"});
    const Job killed = dead.load(fbs::Fate::Killed, 700);
    CHECK(killed.lanes[0].ranges[0].end == End::kUnfinished);
    CHECK(killed.lanes[0].ranges[0].end_ns == kEpochNs + 700);
    CHECK(killed.halves[0].end == End::kUnfinished);
    CHECK(killed.totals.unfinished == 2);
    CHECK(killed.totals.calls_unfinished == 1);
}

TEST_CASE("load: what was read before is dropped by its position") {
    OneLane one;
    one.lane->range("a", 10, 20);
    const std::uint64_t second = one.lane->range("b", 30, 40);
    one.lane->op("c", 50, 60, 1, 1);
    one.lane->repeat_from(second);
    one.lane->flush();
    one.lane->range("d", 70, 80);
    const Job job = one.load();
    CHECK(job.lanes[0].ranges.size() == 4);
    CHECK(job.totals.duplicates == 2);
}

TEST_CASE("load: the same dump twice is one dump") {
    TemporaryDirectory directory;
    write_sample(directory.path());
    const auto job = load_job({{directory / "alpha.rsd", directory / "alpha.rsd"}, true, {}});
    REQUIRE(job);
    CHECK(job->processes.size() == 1);
    CHECK(job->totals.ranges == 3);
    CHECK(job->halves.size() == 1);
    CHECK(job->totals.duplicates == 5);
}

TEST_CASE("load: positions go on when another thread takes a lane, and tracks don't mix") {
    OneLane one;
    one.lane->range("first thread", 10, 20);
    one.lane->flush();
    LaneMaker& next = one.dump.lane(0, 0, 200, 1);
    next.pad(one.lane->position());
    next.range("second thread", 30, 40);
    const Job job = one.load();
    REQUIRE(job.lanes.size() == 2);
    CHECK(job.lanes[0].tid == 100);
    CHECK(job.lanes[1].tid == 200);
    CHECK(job.lanes[1].ranges.size() == 1);
    CHECK(job.totals.duplicates == 0);
}

TEST_CASE("load: a name written inline belongs to the record that follows") {
    OneLane one;
    one.lane->inline_name("a name that found the table full");
    one.lane->range("(inline)", 10, 20);
    one.lane->range("plain", 30, 40);
    const Job job = one.load();
    CHECK(job.names[job.lanes[0].ranges[0].name] == "a name that found the table full");
    CHECK(job.names[job.lanes[0].ranges[1].name] == "plain");
    CHECK(job.lanes[0].records == 2);
}

TEST_CASE("load: records of unknown kinds are counted and passed over") {
    OneLane one;
    one.lane->raw({ringside::schema::RecordHeader{static_cast<RecordKind>(99), 2, 0, {}}.pack(), 5,
                   6, 7, 8, 9, 10, 11});
    one.lane->range("after", 10, 20);
    const Job job = one.load();
    CHECK(job.totals.unknown_records == 1);
    CHECK(job.lanes[0].ranges.size() == 1);
}

TEST_CASE("load: the index joins halves; parents may stand after their children") {
    TemporaryDirectory directory;
    write_sample(directory.path());
    const Job job = loaded(directory.path());
    CHECK(job.has_index);
    CHECK(job.corrected);
    CHECK(job.clock_bound_ns() == 2500);
    REQUIRE(job.calls.size() == 2);
    CHECK(job.totals.joined_requests == 2);
    CHECK(job.totals.joined_replies == 2);
    CHECK(job.totals.unjoined == 0);
    const RpcNames names(job);
    CHECK(names.text(names.chain(0)) ==
          "rpc_sync#nested(worker0 -> worker1)#remote_op: rpc_sync#udf(worker1 -> worker2)");
    const RequestIndex index(job);
    CHECK(index.calls(1).size() == 1);
    CHECK(index.calls(1)[0] == 0);
    const auto served = index.ranges(job.calls[0].server);
    REQUIRE(served.size() == 2);
    CHECK(job.names[job.lanes[served[0].lane].ranges[served[0].range].name] == "aten::rand");
}

TEST_CASE(
    "load: without an index halves stay unjoined, parents within a process are found all the "
    "same") {
    TemporaryDirectory directory;
    write_sample(directory.path(), false);
    const Job job = loaded(directory.path());
    CHECK_FALSE(job.has_index);
    CHECK_FALSE(job.corrected);
    CHECK(job.calls.size() == 4);
    CHECK(job.totals.unjoined == 4);
    const RpcNames names(job);
    std::vector<std::string> chains;
    for (Index i = 0; i < job.calls.size(); ++i) chains.push_back(names.text(names.chain(i)));
    std::sort(chains.begin(), chains.end());
    CHECK(chains ==
          std::vector<std::string>{
              "rpc#nested(worker0 -> worker1)",
              "rpc#nested(worker0 -> worker1)#remote_op: rpc_sync#udf(worker1 -> worker2)",
              "rpc#udf(worker1 -> worker2)", "rpc_sync#nested(worker0 -> worker1)"});
}

TEST_CASE("load: an index in memory does the same as one in a file") {
    TemporaryDirectory directory;
    write_sample(directory.path(), false);
    IndexMaker maker({"alpha", "beta", "gamma"});
    maker.single({2, 0, 0, 0, 0}, true, fbs::RpcState::Orphan);
    const auto buffer = maker.bytes();
    const auto job = load_job({{directory.path()}, true, buffer});
    REQUIRE(job);
    CHECK(job->has_index);
    CHECK(job->totals.orphans == 1);
    CHECK(job->totals.unjoined == 3);
}

TEST_CASE("load: clock corrections apply to every time of their node, and can be left out") {
    TemporaryDirectory directory;
    write_sample(directory.path(), false);
    IndexMaker maker({"alpha", "beta", "gamma"});
    maker.clock(1, -1'000'000'000, 50'000);  // 50 ppm
    maker.write(directory / "job.rsj");
    const auto begin = [](const Job& job) {
        for (const Lane& lane : job.lanes) {
            if (job.nodes[job.process_of(lane).node].name == "beta")
                return lane.ranges.front().begin_ns;
        }
        return std::int64_t{0};
    };
    CHECK(begin(loaded(directory.path(), false)) == kEpochNs + 400'000);
    CHECK(begin(loaded(directory.path())) == kEpochNs + 400'000 - 1'000'000'000 + 20);
}

TEST_CASE("load: an index that is wrong about halves and parents does no harm") {
    TemporaryDirectory directory;
    write_sample(directory.path(), false);
    IndexMaker maker({"alpha", "beta", "gamma"});
    maker.joined({0, 0, 0, 0, 999}, {9, 0, 0, 0, 0}, 0);  // no such halves, its own parent
    maker.joined({2, 0, 0, 0, 0}, {2, 0, 0, 0, 0}, 2);    // one half as both
    maker.joined({0, 5, 0, 0, 3}, {1, 0, 7, 0, 0}, 1);    // no such process, no such lane
    maker.write(directory / "job.rsj");
    const Job job = loaded(directory.path());
    for (const Half& half : job.halves) CHECK(half.call < job.calls.size());
    const RpcNames names(job);  // ends although parents went in circles
    for (Index i = 0; i < job.calls.size(); ++i) CHECK_FALSE(names.text(names.chain(i)).empty());
    CHECK(job.totals.joined_requests == 0);
}

TEST_CASE("load: a fetch inside torch's own to_here range is marked as its bookkeeping") {
    OneLane one;
    one.lane->rpc_begin(110,
                        {false, 1, 77, 0, "to_here", "", "worker0", "worker1", RpcMode::kFetch});
    one.lane->rpc_end(190, 1);
    one.lane->range("to_here#(worker0)->(worker1)", 100, 200, 7);
    one.lane->rpc_begin(300,
                        {false, 2, 78, 0, "to_here", "", "worker0", "worker1", RpcMode::kFetch});
    one.lane->rpc_end(310, 2);
    const Job job = one.load();
    CHECK(job.halves[0].inside_fetch_range);
    CHECK_FALSE(job.halves[1].inside_fetch_range);
}

TEST_CASE(
    "load: a nameless user range around a fetch gets the fetch's name, any other keeps none") {
    OneLane one;
    const auto user = static_cast<std::uint8_t>(ringside::schema::TorchScope::kUser);
    one.lane->rpc_begin(110,
                        {false, 1, 77, 0, "to_here", "", "worker0", "worker1", RpcMode::kFetch});
    one.lane->rpc_end(190, 1);
    one.lane->range("", 100, 200, user);
    one.lane->range("", 300, 400, user);
    const Job job = one.load();
    CHECK(job.halves[0].inside_fetch_range);
    CHECK(job.names[job.lanes[0].ranges[0].name] == "to_here#(worker0)->(worker1)");
    CHECK(job.names[job.lanes[0].ranges[1].name] == kUnnamed);
}

TEST_CASE("load: accounts and losses come from the footer") {
    OneLane one;
    one.lane->range("a", 10, 20);
    one.lane->lose(5, 30, 40);
    const Job job = one.load();
    CHECK(job.lanes[0].account.known);
    CHECK(job.lanes[0].account.written == 6);
    CHECK(job.lanes[0].account.kept == 1);
    CHECK(job.totals.lost == 5);
}
