// Messages among the calls: edges between ranks, no request of their own, arrows to where they were received.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "rpc_job.hpp"
#include "viewer_export/out/rpc_view.hpp"
#include "viewer_export/out/trace.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export;
namespace fbs = ringside::fbs;
using nlohmann::json;
using ringside::schema::RpcStatus;

namespace {

/// Rank 0 on alpha sends to rank 1 on beta, beside what TwoNodes does.
class TwoRanks : public TwoNodes {
public:
    /// When it was sent, in us, until when the call took, when it was received.
    struct Sent {
        std::uint64_t begin, end, received;
    };
    HalfSpec half(bool server, std::uint64_t key) const {
        HalfSpec spec;
        spec.message = true;
        spec.server = server;
        spec.key = key;
        spec.span = 0x1000 + key;
        spec.function = server ? "MPI_Recv" : "MPI_Send";
        spec.module = "world";
        spec.peer = server ? "rank 0" : "rank 1";
        spec.wire_id = key;
        spec.wire_type = 7;
        return spec;
    }
    fbs::HalfRef send(std::uint64_t begin, std::uint64_t end, std::uint64_t parent_key = 0) {
        HalfSpec spec = half(false, ++messages_);
        spec.parent_key = parent_key;
        const auto position = caller_->rpc_begin(begin * kUs, spec);
        if (end != 0) caller_->rpc_end(end * kUs, messages_, RpcStatus::kSent);
        return {0, 0, 0, 0, position};
    }
    fbs::HalfRef receive(std::uint64_t at) {
        const auto position = served(9).rpc_begin(at * kUs, half(true, messages_));
        served(9).rpc_end(at * kUs, messages_);
        return {1, 0, 9, 0, position};
    }
    int message(const Sent& sent) {
        const auto client = send(sent.begin, sent.end);
        const int index = index_.joined(client, receive(sent.received), -1, false, false);
        index_.index.rpcs.back()->span = 0x1000 + messages_;
        return index;
    }

private:
    std::uint64_t messages_ = 100;
};

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

json traced(const model::Job& job, TraceCounts& counts) {
    TemporaryDirectory directory;
    const auto written = write_chrome(job, directory / "trace.json");
    REQUIRE(written);
    counts = *written;
    return json::parse(read_text(directory / "trace.json"))["traceEvents"];
}

/// The line of the table that has this text.
std::string line_with(const std::string& text, const std::string& what) {
    const std::size_t at = text.find(what);
    REQUIRE(at != std::string::npos);
    const std::size_t begin = text.rfind('\n', at) + 1;
    return text.substr(begin, text.find('\n', at) - begin);
}

}  // namespace

TEST_CASE("messages: an edge between ranks, with the send's time and the way, and no service") {
    TwoRanks ranks;
    ranks.message({100, 110, 150});
    ranks.message({200, 230, 220});
    const json edges = told(ranks.load())["edges"];
    REQUIRE(edges.size() == 1);
    const json& edge = edges[0];
    CHECK(edge["caller"] == "rank 0");
    CHECK(edge["callee"] == "rank 1");
    CHECK(edge["method"] == "MPI_Send");
    CHECK(edge["messages"] == true);
    CHECK(edge["calls"] == 2);
    CHECK(edge["errors"] == 0);
    CHECK(edge["total_us"] == 40.0);
    CHECK(edge["caller_us"]["p50"] == 10.0);
    CHECK(edge["request_us"]["p95"] == 50.0);
    CHECK(edge["bound_us"] == 5.0);
    for (const char* nobodys : {"service_us", "queued_us", "rest_us", "reply_us"})
        CHECK_MESSAGE(edge[nobodys].is_null(), nobodys);
}

TEST_CASE("messages: beside calls their service is a dash; the most expensive edge comes first") {
    TwoRanks ranks;
    ranks.message({100, 110, 150});
    ranks.call({300, 310, 330, 900, 1000});
    const model::Job job = ranks.load();
    CHECK(told(job)["edges"][0]["messages"] == false);
    CHECK(told(job)["edges"][0]["service_us"]["p50"] == 570.0);
    const std::string text = text_of(job);
    CHECK(line_with(text, "MPI_Send").find("  -  ") != std::string::npos);
    CHECK(text.find("rpc_sync#f") < text.find("MPI_Send"));
    CHECK(text_of(job, {.row_limit = 1}).find("\n1 row is not shown (--row-limit 0") !=
          std::string::npos);
}

TEST_CASE("messages: cut, orphaned, unfinished and open ones are counted, an error is one") {
    TwoRanks ranks;
    ranks.index_.single(ranks.send(100, 110), false, fbs::RpcState::Cut);
    ranks.index_.single(ranks.send(200, 210), false, fbs::RpcState::Orphan);
    ranks.index_.single(ranks.send(300, 0), false, fbs::RpcState::Cut);
    ranks.index_.single(ranks.send(400, 0), false, fbs::RpcState::Orphan, true);
    const auto failed = ranks.caller_->rpc_begin(500 * kUs, ranks.half(false, 99));
    ranks.caller_->rpc_end(501 * kUs, 99, RpcStatus::kError);
    ranks.index_.single({0, 0, 0, 0, failed}, false, fbs::RpcState::Cut);
    const json edge = told(ranks.load())["edges"][0];
    CHECK(edge["calls"] == 5);
    CHECK(edge["cut"] == 3);
    CHECK(edge["orphans"] == 2);
    CHECK(edge["open"] == 1);
    CHECK(edge["unfinished"] == 1);
    CHECK(edge["errors"] == 1);
    CHECK(edge["errors_by_status"] == json{{"error", 1}});
}

TEST_CASE("messages: a receive alone is of the edge from its sender") {
    TwoRanks ranks;
    ranks.send(100, 110);
    ranks.index_.single(ranks.receive(200), true, fbs::RpcState::Cut);
    const json edges = told(ranks.load())["edges"];
    const auto alone = std::find_if(edges.begin(), edges.end(),
                                    [](const json& edge) { return edge["method"] == "MPI_Recv"; });
    REQUIRE(alone != edges.end());
    CHECK((*alone)["caller"] == "rank 0");
    CHECK((*alone)["callee"] == "rank 1");
    CHECK((*alone)["errors"] == 0);
}

TEST_CASE("messages: alone they are no slow requests, but counted") {
    TwoRanks ranks;
    ranks.message({100, 9000, 9100});
    ranks.message({9200, 9300, 9400});
    ranks.call({300, 310, 330, 900, 1000});
    const model::Job job = ranks.load();
    const json all = told(job);
    CHECK(all["requests_total"] == 1);
    CHECK(all["messages_total"] == 2);
    REQUIRE(all["slowest"].size() == 1);
    CHECK(all["slowest"][0]["calls"][0]["method"] == "rpc_sync#f");
    const std::string text = text_of(job);
    CHECK(text.find("Slowest of 1 requests") != std::string::npos);
    CHECK(text.find("2 messages that no request sent") != std::string::npos);
    const auto one = request_json(job, "0000000000001065", {});
    REQUIRE(one);
    CHECK(json::parse(*one)["calls"][0]["method"] == "MPI_Send");
}

TEST_CASE("messages: a job of nothing else has edges, no trees, and says how many") {
    TwoRanks ranks;
    ranks.message({100, 110, 150});
    const std::string text = text_of(ranks.load());
    CHECK(text.find("Slowest") == std::string::npos);
    CHECK(text.find("Service p50") == std::string::npos);  // a column of dashes says nothing
    CHECK(text.find("1 message that no request sent") != std::string::npos);
}

TEST_CASE("messages: one that was sent while a request was served is that one's child") {
    TwoRanks ranks;
    const int request = ranks.call({100, 110, 120, 900, 950});
    ranks.message({200, 210, 250});
    ranks.index_.index.rpcs.back()->parent = request;
    const model::Job job = ranks.load();
    const json all = told(job);
    CHECK(all["messages_total"] == 0);
    const json& calls = all["slowest"][0]["calls"];
    REQUIRE(calls.size() == 2);
    CHECK(calls[1]["method"] == "MPI_Send");
    CHECK(calls[1]["depth"] == 1);
    CHECK(calls[1]["status"] == "sent");
    CHECK_FALSE(calls[1].contains("service_us"));
    CHECK(calls[1]["request_us"] == 50.0);
    const auto asked = request_json(job, "0000000000000101", {});
    REQUIRE(asked);
    CHECK(json::parse(*asked)["calls"].size() == 2);
}

TEST_CASE("messages: the trace id of a job is none of a request") {
    TwoRanks ranks;
    for (std::uint64_t i = 0; i < 3; ++i) {
        ranks.message({100 + 100 * i, 110 + 100 * i, 150 + 100 * i});
        ranks.index_.index.rpcs.back()->trace_hi = 0xabcdef;
        ranks.index_.index.rpcs.back()->trace_lo = 1;
    }
    const auto asked = render_request(ranks.load(), "0000000000abcdef0", {});
    REQUIRE_FALSE(asked);
    CHECK(asked.error().code == ringside::schema::ErrorCode::kNothingMatched);
}

TEST_CASE("messages: an arrow each from the send to the receive, on rows beside the threads'") {
    TwoRanks ranks;
    ranks.message({100, 110, 150});
    ranks.message({120, 130, 150});
    ranks.served(9).range("MPI_Waitall", 90 * kUs, 150 * kUs);
    TraceCounts counts;
    const json events = traced(ranks.load(), counts);
    CHECK(counts.rpc_halves == 4);
    CHECK(counts.rpc_requests == 2);
    CHECK(counts.rpc_replies == 0);
    std::set<json> rows;
    json row_names;
    for (const json& event : events) {
        if (event["ph"] == "M" && event["name"] == "thread_name")
            row_names[event["tid"].dump()] = event["args"]["name"];
        if (event.value("cat", "") != "rpc" || event["ph"] != "X") continue;
        CHECK(event["name"] == "MPI_Send(rank 0 -> rank 1)");
        CHECK(event["args"]["Communicator"] == "world");
        CHECK(event["args"]["Tag"] == 7);
        CHECK_FALSE(event["args"].contains("Service ns"));
        if (event["args"]["Side"] == "client") {
            CHECK(event["args"]["Status"] == "sent");
        } else {
            CHECK(event["dur"] == 0.0);
            rows.insert(event["tid"]);
        }
    }
    // Both were received by one call: side by side.
    REQUIRE(rows.size() == 1);
    CHECK(row_names[rows.begin()->dump()] == "messages in 1");
}
