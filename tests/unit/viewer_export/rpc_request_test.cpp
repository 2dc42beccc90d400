// One request, asked for by its id, with all that it caused.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "rpc_job.hpp"
#include "viewer_export/out/rpc_view.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export;
using nlohmann::json;
using ringside::schema::ErrorCode;

namespace {

json asked(const model::Job& job, const std::string& id, const RpcOptions& options = {}) {
    const auto text = request_json(job, id, options);
    if (!text) FAIL(text.error().message);
    return json::parse(*text);
}

}  // namespace

TEST_CASE("request: what ran stands under the call that was served, with self times") {
    TemporaryDirectory directory;
    const model::Job job = sample(directory);
    const json all = asked(job, "000000000000111100000000");
    REQUIRE(all["calls"].size() == 2);
    const json& nested = all["calls"][0];
    CHECK(nested["ran"].size() == 1);
    CHECK(nested["ran"][0] == json{{"what", "operator"},
                                   {"name", "aten::add"},
                                   {"count", 1},
                                   {"total_us", 43.325},
                                   {"self_us", 43.325}});
    const json& udf = all["calls"][1];
    REQUIRE(udf["ran"].size() == 2);
    CHECK(udf["ran"][0]["name"] == "aten::rand");
    CHECK(udf["ran"][0]["self_us"] == 40.0);
    CHECK(udf["events"].size() == 2);
    CHECK(udf["events"][0]["after_arrival_us"] == 100.0);
    CHECK(all["unknown"]["events"] == 0);
    const auto text = render_request(job, "4D", {});
    REQUIRE_FALSE(text);  // span ids are 16 digits: none begins so
    const auto span = render_request(job, "000000000000004E", {});
    REQUIRE(span);
    CHECK(span->find("aten::rand") != std::string::npos);
    CHECK(span->find("aten::add") == std::string::npos);
    CHECK(span->find(": 1 call\n") != std::string::npos);
}

TEST_CASE("request: no match, several matches, and what is no id") {
    TemporaryDirectory directory;
    const model::Job job = sample(directory);
    const auto code = [&](const std::string& id) {
        const auto text = render_request(job, id, {});
        REQUIRE_FALSE(text);
        CHECK(text.error().message.find("--request " + id) == 0);
        return text.error().code;
    };
    CHECK(code("f00") == ErrorCode::kNothingMatched);
    CHECK(code("0000") == ErrorCode::kUsage);  // a trace, and both spans
    CHECK(code("00000000000000") == ErrorCode::kUsage);
    CHECK(code("nonsense") == ErrorCode::kUsage);
    CHECK(code(std::string(33, '1')) == ErrorCode::kUsage);
    CHECK(render_request(job, "00000000000011110000000000002222", {}));
}

TEST_CASE("request: what ran where the request is unknown is counted, not shown") {
    TwoNodes nodes;
    const auto begin = nodes.caller_->rpc_begin(100 * kUs, nodes.client("f", 1));
    nodes.caller_->rpc_end(500 * kUs, 1);
    LaneMaker& lane = nodes.served(0);
    const auto arrived = lane.rpc_begin(110 * kUs, nodes.server("f", 1));
    lane.serve(120 * kUs, 1);
    lane.range("known", 130 * kUs, 140 * kUs);
    LaneMaker& other = nodes.served(1);
    other.range("before", 10 * kUs, 20 * kUs);
    other.lose(3, 30 * kUs, 40 * kUs);
    other.stop_serving(300 * kUs, true);
    other.range("nobody knows", 250 * kUs, 305 * kUs);
    other.range("not the request's", 310 * kUs, 320 * kUs);
    lane.stop_serving(400 * kUs);
    lane.rpc_end(410 * kUs, 1);
    nodes.index_.joined({0, 0, 0, 0, begin}, {1, 0, 0, 0, arrived});
    const model::Job job = nodes.load();
    const json all = asked(job, "00000000000011110000000000002222");
    REQUIRE(all["calls"].size() == 1);
    REQUIRE(all["calls"][0]["ran"].size() == 1);
    CHECK(all["calls"][0]["ran"][0]["name"] == "known");
    CHECK(all["unknown"] == json{{"events", 1}, {"lanes", 1}});
    const auto text = render_request(job, "00000000000011110000000000002222", {});
    REQUIRE(text);
    CHECK(text->find("Not shown: 1 events on 1 lanes") != std::string::npos);
}
