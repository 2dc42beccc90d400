// Calls by edge, what was served at once, trees, one request: by hand-made dumps whose numbers are easy to add up.
#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "rpc_job.hpp"
#include "viewer_export/model/call_times.hpp"
#include "viewer_export/out/rpc_view.hpp"
#include "viewer_export/out/trace.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export;
namespace fbs = ringside::fbs;
using nlohmann::json;
using ringside::schema::ErrorCode;
using ringside::schema::RpcStatus;

namespace {

json told(const model::Job& job, const RpcOptions& options = {}) {
    const auto text = rpc_json(job, options);
    REQUIRE(text);
    return json::parse(*text);
}

std::string text_of(const model::Job& job, const RpcOptions& options = {}) {
    const auto text = render_rpc(job, options);
    REQUIRE(text);
    return *text;
}

}  // namespace

TEST_CASE("durations: percentiles are of the nearest rank") {
    model::Durations none;
    CHECK_FALSE(none.percentile(50).has_value());
    model::Durations durations;
    durations.add(7);
    CHECK(durations.percentile(0) == 7);
    CHECK(durations.percentile(99) == 7);
    durations = {};
    for (std::int64_t i = 100; i > 0; --i) durations.add(i);
    CHECK(durations.percentile(50) == 50);
    CHECK(durations.percentile(95) == 95);
    CHECK(durations.percentile(99) == 99);
    CHECK(durations.percentile(100) == 100);
    durations.add(101);
    CHECK(durations.percentile(50) == 51);
}

TEST_CASE("call times: at the caller = service + rest; what was queued is part of the rest") {
    TwoNodes nodes;
    nodes.call({100, 130, 150, 400, 450});
    const model::Job job = nodes.load();
    const model::CallTimes times = model::call_times(job, job.calls[0]);
    CHECK(times.caller_ns == 350'000);
    CHECK(times.queued_ns == 20'000);
    CHECK(times.service_ns == 250'000);
    CHECK(times.rest_ns == 100'000);
    CHECK(times.request_ns == 30'000);
    CHECK(times.reply_ns == 50'000);
    CHECK(times.bound_ns == 5000);  // of both clocks
}

TEST_CASE("call times: without a reply there is no rest, without compared clocks no way") {
    TwoNodes nodes;
    nodes.call({100, 130, 150, 400, 300}, "f", RpcStatus::kTimeout);
    nodes.index_.index.rpcs[0]->reply = false;
    nodes.index_.index.nodes[1]->clock = nullptr;
    const model::Job job = nodes.load();
    const model::CallTimes times = model::call_times(job, job.calls[0]);
    CHECK(times.caller_ns == 200'000);
    CHECK(times.service_ns == 250'000);
    CHECK_FALSE(times.rest_ns);
    CHECK_FALSE(times.request_ns);
}

TEST_CASE("call times: a context after a loss does not tell when a thread took the request") {
    TwoNodes nodes;
    const auto begin = nodes.caller_->rpc_begin(100 * kUs, nodes.client("f", 1));
    nodes.caller_->rpc_end(500 * kUs, 1);
    LaneMaker& lane = nodes.served(0);
    const auto arrived = lane.rpc_begin(150 * kUs, nodes.server("f", 1));
    lane.lose(3, 160 * kUs, 170 * kUs);
    lane.serve(200 * kUs, 1, true);
    lane.rpc_end(400 * kUs, 1);
    nodes.index_.joined({0, 0, 0, 0, begin}, {1, 0, 0, 0, arrived});
    const model::Job job = nodes.load();
    const model::CallTimes times = model::call_times(job, job.calls[0]);
    CHECK_FALSE(times.queued_ns);
    CHECK(times.service_ns == 250'000);
    CHECK(text_of(job).find("nobody knows which request") != std::string::npos);
}

TEST_CASE("rpc: an edge a caller, callee and method, by the time at the caller") {
    TwoNodes nodes;
    nodes.call({100, 110, 120, 180, 200}, "fast");
    nodes.call({300, 310, 330, 900, 1000}, "slow");
    nodes.call({1100, 1110, 1120, 1180, 1300}, "fast", RpcStatus::kTimeout);
    const model::Job job = nodes.load();
    const json all = told(job);
    REQUIRE(all["edges"].size() == 2);
    const json& slow = all["edges"][0];
    CHECK(slow["method"] == "rpc_sync#slow");
    CHECK(slow["caller"] == "worker0");
    CHECK(slow["callee"] == "worker1");
    CHECK(slow["caller_us"]["p99"] == 700.0);
    CHECK(slow["service_us"]["p50"] == 570.0);
    CHECK(slow["rest_us"]["p95"] == 130.0);
    CHECK(slow["bound_us"] == 5.0);
    const json& fast = all["edges"][1];
    CHECK(fast["calls"] == 2);
    CHECK(fast["total_us"] == 300.0);
    CHECK(fast["errors"] == 1);
    CHECK(fast["errors_by_status"] == json{{"timeout", 1}});
    const std::string text = text_of(job);
    CHECK(text.find("1 timeout") != std::string::npos);
    CHECK(text.find("right within +-2.500us") != std::string::npos);
    CHECK(told(job, {.sort_by = "calls"})["edges"][0]["method"] == "rpc_sync#fast");
    CHECK(told(job, {.row_limit = 1})["edges"].size() == 1);
    CHECK(told(job, {.row_limit = 1})["edges_total"] == 2);
    CHECK(text_of(job, {.row_limit = 1}).find("1 row is not shown") != std::string::npos);
    for (const std::string_view key : rpc_sort_keys())
        CHECK(render_rpc(job, {.sort_by = std::string(key)}));
    const auto refused = render_rpc(job, {.sort_by = "colour"});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kUsage);
}

TEST_CASE("rpc: orphan, cut, unfinished and open calls are told apart and have no times") {
    TwoNodes nodes;
    nodes.single(fbs::RpcState::Orphan, 100, true);
    nodes.single(fbs::RpcState::Cut, 200, true);
    nodes.single(fbs::RpcState::Cut, 300, false);
    nodes.single(fbs::RpcState::Orphan, 400, false, true);
    const json edge = told(nodes.load())["edges"][0];
    CHECK(edge["calls"] == 4);
    CHECK(edge["orphans"] == 2);
    CHECK(edge["cut"] == 2);
    CHECK(edge["open"] == 1);
    CHECK(edge["unfinished"] == 1);
    CHECK(edge["errors_by_status"] == json{{"peer gone", 2}});
    CHECK(edge["caller_us"]["count"] == 2);
    CHECK(edge["total_us"] == 14.0);
    CHECK(edge["service_us"]["count"] == 0);
    CHECK_FALSE(edge.contains("bound_us"));
}

TEST_CASE("rpc: torch's own messages are hidden unless asked for") {
    TwoNodes nodes;
    HalfSpec own = nodes.client("_all_gather", 1);
    own.module = "torch.distributed.rpc.api";
    const auto begin = nodes.caller_->rpc_begin(100 * kUs, own);
    nodes.caller_->rpc_end(200 * kUs, 1);
    nodes.index_.single({0, 0, 0, 0, begin}, false, fbs::RpcState::Cut);
    const model::Job job = nodes.load();
    CHECK(told(job)["edges"].empty());
    CHECK(text_of(job).find("--internal") != std::string::npos);
    CHECK(told(job, {.internal = true})["edges"].size() == 1);
}

TEST_CASE("rpc: a job without calls says so, and what to do") {
    TwoNodes nodes;
    nodes.caller_->range("aten::add", 10, 20);
    const model::Job job = nodes.load();
    CHECK(text_of(job).starts_with("No RPC was recorded: "));
    CHECK(text_of(job).find("ringside ps") != std::string::npos);
    CHECK(told(job)["edges"].empty());
    CHECK(told(job)["slowest"].empty());
}

TEST_CASE("rpc: one thread serves one at once, and who comes meanwhile waits") {
    TwoNodes nodes;
    nodes.call({100, 110, 110, 200, 210});
    nodes.call({100, 120, 200, 300, 310});  // back to back is not at once
    nodes.call({100, 130, 300, 400, 410});
    const json load = told(nodes.load())["served"][0];
    CHECK(load["worker"] == "worker1");
    CHECK(load["requests"] == 3);
    CHECK(load["most_at_once"] == 1);
    CHECK(load["mean_at_once"] == 1.0);
    CHECK(load["time_us"] == 290.0);
    CHECK(load["at_once_us"] == json{0.0, 290.0});
    CHECK(load["came_at_most"]["requests"] == 2);
    CHECK(load["came_at_most"]["queued_p50_us"] == 80.0);
    CHECK(load["came_at_most"]["rest_p95_us"] == 210.0);
    CHECK(load["came_else"]["requests"] == 1);
    CHECK(load["came_else"]["queued_p50_us"] == 0.0);
}

TEST_CASE("rpc: several threads serve several at once; the time between counts in the mean") {
    TwoNodes nodes;
    nodes.call({100, 100, 100, 200, 210, 0});
    nodes.call({100, 100, 150, 250, 260, 1});
    nodes.call({300, 350, 350, 400, 410, 0});
    const model::Job job = nodes.load();
    const json load = told(job)["served"][0];
    CHECK(load["most_at_once"] == 2);
    CHECK(load["at_once_us"] == json{100.0, 150.0, 50.0});
    CHECK(load["mean_at_once"].get<double>() == doctest::Approx(250.0 / 300));
    const auto parts = load["parts"].get<std::vector<int>>();
    REQUIRE(parts.size() == 60);
    CHECK(parts[0] == 1);
    CHECK(parts[12] == 2);
    CHECK(parts[40] == 0);
    CHECK(parts[59] == 1);
    CHECK(text_of(job).find("11222") != std::string::npos);
    CHECK(text_of(job).find("....") != std::string::npos);
}

TEST_CASE("rpc: a tree across nodes, each call with its own times and place") {
    TemporaryDirectory directory;
    const json all = told(sample(directory));
    REQUIRE(all["slowest"].size() == 1);  // the nested one is no root
    const json& calls = all["slowest"][0]["calls"];
    REQUIRE(calls.size() == 2);
    CHECK(calls[0]["method"] == "rpc_sync#nested");
    CHECK(calls[0]["depth"] == 0);
    CHECK(calls[0]["span_id"] == "000000000000004d");
    CHECK(calls[0]["caller_us"] == 2000.0);
    CHECK(calls[0]["queued_us"] == 10.0);
    CHECK(calls[0]["service_us"] == 1740.0);
    CHECK(calls[1]["parent"] == calls[0]["call"]);
    CHECK(calls[1]["served_at"]["node"] == "gamma");
    CHECK(calls[1]["depth"] == 1);
    CHECK(all["slowest"][0]["left_out"] == 0);
}

TEST_CASE("rpc: deep and wide trees are cut and what is left out is counted") {
    TwoNodes nodes;
    const int root = nodes.call({100, 110, 120, 90'000, 90'010}, "root");
    for (std::uint64_t i = 0; i < 40; ++i) {
        const std::uint64_t t = 200 + 100 * i;
        nodes.call({t, t + 1, t + 2, t + 3, t + 4 + i}, "wide");
        nodes.index_.index.rpcs.back()->parent = root;
    }
    int parent = root;
    for (std::uint64_t i = 0; i < 30; ++i) {
        const std::uint64_t t = 5000 + 10 * i;
        const int child = nodes.call({t, t + 1, t + 2, 80'000 - i, 80'001 - i}, "deep");
        nodes.index_.index.rpcs.back()->parent = parent;
        parent = child;
    }
    const model::Job job = nodes.load();
    const json tree = told(job)["slowest"][0];
    CHECK(tree["calls_in_all"] == 71);
    CHECK(tree["calls"].size() == 1 + 15 + 11);
    CHECK(tree["left_out"] == 71 - 27);
    CHECK(tree["calls"].back()["method"] == "rpc_sync#deep");
    // Of the wide ones those that took longest.
    CHECK(tree["calls"][1]["caller_us"] == 4.0 + 25);
    const std::string text = text_of(job);
    CHECK(text.find("... 25 more calls below") != std::string::npos);
    CHECK(text.find("... 19 more calls below") != std::string::npos);
    const auto whole = request_json(job, std::string(12, '0') + "1111", {});
    REQUIRE(whole);
    CHECK(json::parse(*whole)["calls"].size() == 71);
}

TEST_CASE("rpc: parents in a circle and parents that are missing do no harm") {
    TwoNodes nodes;
    nodes.call({100, 110, 120, 200, 210}, "a");
    nodes.call({100, 110, 120, 200, 211}, "b");
    nodes.index_.index.rpcs[0]->parent = 1;
    nodes.index_.index.rpcs[1]->parent = 0;
    HalfSpec under = nodes.client("under", 99);
    under.parent_key = 1234;  // its request began before the capture
    const auto begin = nodes.caller_->rpc_begin(500 * kUs, under);
    nodes.caller_->rpc_end(600 * kUs, 99);
    nodes.index_.single({0, 0, 0, 0, begin}, false, fbs::RpcState::Cut);
    const model::Job job = nodes.load();
    const json all = told(job);
    CHECK(all["requests_total"] == 2);
    std::size_t calls = 0;
    for (const json& tree : all["slowest"]) calls += tree["calls"].size();
    CHECK(calls == 3);
    CHECK(text_of(job).find("began before the capture") != std::string::npos);
}

TEST_CASE("rpc: the view, its JSON and Chrome's JSON have the same numbers of a call") {
    TemporaryDirectory directory;
    const model::Job job = sample(directory);
    REQUIRE(write_chrome(job, directory / "trace.json"));
    std::map<std::string, std::vector<json>> halves;
    const json trace = json::parse(read_text(directory / "trace.json"));
    for (const json& event : trace["traceEvents"]) {
        if (event.value("cat", "") == "rpc" && event["ph"] == "X")
            halves[event["args"]["Span id"]].push_back(event["args"]);
    }
    const std::string text = text_of(job);
    const json view = told(job);
    for (const json& call : view["slowest"][0]["calls"]) {
        REQUIRE(halves[call["span_id"]].size() == 2);
        CHECK(text.find(call["span_id"].get<std::string>()) != std::string::npos);
        for (const json& half : halves[call["span_id"]]) {
            CHECK(half["Trace id"] == call["trace_id"]);
            CHECK(half["State"] == call["state"]);
            CHECK(half["Caller ns"].get<double>() / 1000 == call["caller_us"]);
            CHECK(half["Service ns"].get<double>() / 1000 == call["service_us"]);
            CHECK(half["Queued ns"].get<double>() / 1000 == call["queued_us"]);
            CHECK(half["Rest ns"].get<double>() / 1000 == call["rest_us"]);
            CHECK(half["Request ns"].get<double>() / 1000 == call["request_us"]);
            CHECK(half["Reply ns"].get<double>() / 1000 == call["reply_us"]);
            CHECK(half["Bound ns"].get<double>() / 1000 == call["bound_us"]);
        }
    }
    CHECK(text.find("1.740ms") != std::string::npos);
}
