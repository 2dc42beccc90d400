// How `ringside rpc` and the time lines show collectives.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "collectives_job.hpp"
#include "files.hpp"
#include "viewer_export/out/collectives_view.hpp"
#include "viewer_export/out/rpc_view.hpp"
#include "viewer_export/out/trace.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export;
using nlohmann::json;
using ringside::schema::ErrorCode;

namespace {

/// Rank 2 is late in 50 collectives; in the last one rank 3 is in another function, of the one before rank 1 is missing.
CollectivesJob late_job() {
    CollectivesJob made;
    made.ranks(made.node(0), 4, 4);
    for (int i = 1; i <= 52; ++i) {
        for (std::uint32_t rank = 0; rank < 4; ++rank) {
            if (i == 51 && rank == 1) continue;
            const bool other = i == 52 && rank == 3;
            made.add(rank, static_cast<std::uint64_t>(i),
                     1000 * i + 10 * rank + (rank == 2 ? 200 : 0), 1000 * i + 300,
                     other ? "MPI_Bcast" : "MPI_Allreduce");
        }
    }
    return made;
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("rpc: collectives have a row a group and function, and a verdict") {
    const CollectivesJob made = late_job();
    const auto text = render_rpc(made.job, {});
    REQUIRE(text);
    CHECK(text->starts_with("Collectives\n"));
    CHECK_FALSE(has(*text, "No RPC"));
    CHECK(has(*text, "rank 2 (51)"));
    CHECK(has(*text, "late: rank 2 of world: last in 51 of 51, others waited"));
    CHECK(has(*text, "world:52: rank 3 is in MPI_Bcast where others are in MPI_Allreduce"));
    CHECK(has(*text, "incomplete: world:51 MPI_Allreduce: 1 of 4 members not seen in it: rank 1"));
}

TEST_CASE("rpc: the same as JSON, with the arrivals of the slowest") {
    const CollectivesJob made = late_job();
    const auto text = rpc_json(made.job, {});
    REQUIRE(text);
    const json all = json::parse(*text)["collectives"];
    REQUIRE(all["rows"].size() == 1);
    const json& row = all["rows"][0];
    CHECK(row["group"] == "world");
    CHECK(row["function"] == "MPI_Allreduce");
    CHECK(row["count"] == 52);
    CHECK(row["complete"] == 51);
    CHECK(row["incomplete"] == 1);
    CHECK(row["last_most_often"] == 2);
    CHECK(row["last_times"] == 51);
    CHECK(row["work_p50_us"] == 80.0);
    CHECK(row["wait_p50_us"] == 220.0 + 210.0 + 190.0);
    CHECK(all["groups"][0]["late"] == 2);
    CHECK(all["groups"][0]["members"][2]["last"] == 51);
    CHECK(all["different_functions"].size() == 1);
    REQUIRE(all["slowest"].size() == 3);
    CHECK(all["slowest"][0]["arrivals"].size() == 4);
}

TEST_CASE("rpc: without collectives there is no section") {
    const CollectivesJob none;
    const auto text = render_rpc(none.job, {});
    REQUIRE(text);
    CHECK(has(*text, "No RPC"));
    CHECK_FALSE(has(*text, "Collectives"));
}

TEST_CASE("rpc --collective: one with its arrivals") {
    const CollectivesJob made = late_job();
    const auto text = render_collective(made.job, "world:7");
    REQUIRE(text);
    CHECK(text->starts_with("world:7 MPI_Allreduce\n"));
    CHECK(has(*text, "last: rank 2, by 190.000us; others waited 620.000us for it"));
    const auto found = collective_json(made.job, "world:52");
    REQUIRE(found);
    const json one = json::parse(*found);
    CHECK(one["last"] == 2);
    CHECK(one["arrivals"][3]["late_us"] == 220.0);
    CHECK(one["arrivals"][2]["function"] == "MPI_Bcast");
    CHECK(render_collective(made.job, "world:53").error().code == ErrorCode::kNothingMatched);
    CHECK(render_collective(made.job, "half:7").error().code == ErrorCode::kNothingMatched);
    for (const char* wrong : {"world", "world:", "world:x", "world:0", "7"})
        CHECK(render_collective(made.job, wrong).error().code == ErrorCode::kUsage);
}

TEST_CASE("time line: the parts of a collective say which one, how late, who was last") {
    CollectivesJob made;
    made.ranks(made.node(0), 3, 3);
    made.add(0, 7, 100, 130);  // gone before the last one came
    made.add(1, 7, 110, 320);
    made.add(2, 7, 300, 310);
    made.add(0, 8, 400, 500);
    TemporaryDirectory directory;
    const auto counts = write_chrome(made.job, directory / "trace.json");
    REQUIRE(counts);
    CHECK(counts->collectives == 1);
    std::vector<json> parts, arrows;
    const json trace = json::parse(read_text(directory / "trace.json"));
    for (const json& event : trace["traceEvents"]) {
        if (event["ph"] == "X") parts.push_back(event);
        if (event["ph"] == "s" || event["ph"] == "f") arrows.push_back(event);
    }
    REQUIRE(parts.size() == 4);
    CHECK(parts[0]["args"]["Collective"] == "world:7");
    CHECK(parts[0]["args"]["Late ns"] == 0);
    CHECK(parts[2]["args"]["Collective"] == "world:7");
    for (const json& part : parts) {
        if (part["args"]["Collective"] == "world:8") {
            CHECK_FALSE(part["args"].contains("Last"));
        } else {
            CHECK(part["args"]["Last"] == "rank 2");
        }
    }
    REQUIRE(arrows.size() == 2);
    for (const json& arrow : arrows)
        CHECK(arrow["ts"].get<double>() == doctest::Approx(arrow["ph"] == "s" ? 200 : 219.999));
    const auto packets = write_perfetto(made.job, directory / "trace.pftrace");
    REQUIRE(packets);
    CHECK(packets->collectives == 1);
}

TEST_CASE(
    "time line: no arrow where the clocks can't tell who was last, nor to a rank's other files") {
    CollectivesJob made;
    made.ranks(made.node(500), 1, 2);
    made.ranks(made.node(0), 1, 2);
    made.add(0, 7, 100, 400);
    made.add(1, 7, 300, 410);
    TemporaryDirectory directory;
    const auto unsure = write_chrome(made.job, directory / "trace.json");
    REQUIRE(unsure);
    CHECK(unsure->collectives == 0);
    made.job.nodes[0].clock.bound_ns = 0;
    const auto sure = write_chrome(made.job, directory / "trace.json");
    REQUIRE(sure);
    CHECK(sure->collectives == 1);
    TraceOptions one;
    one.processes = {true, false};
    const auto of_rank = write_chrome(made.job, directory / "trace.json", one);
    REQUIRE(of_rank);
    CHECK(of_rank->collectives == 0);
}
