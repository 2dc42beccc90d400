// `ringside top`'s table of two looks.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tools/ringside/top_view.hpp"

namespace ringside::tools {
namespace {

/// An agent with one process.
AgentLook look(std::int64_t uptime_ns, std::uint64_t events, std::uint32_t pid = 7) {
    AgentLook made{"ipc:///a", fbs::StatusReplyT{}, fbs::ProcessesReplyT{}, {}};
    made.status->node = "a";
    made.status->job = "job";
    made.status->pid = pid;
    made.status->processes = 1;
    made.status->uptime_ns = uptime_ns;
    made.status->total_events = events;
    made.status->total_bytes = events * 10;
    made.status->cpu_ns = uptime_ns / 50;
    auto process = std::make_unique<fbs::ProcessStatusT>();
    process->process = std::make_unique<fbs::ProcessT>();
    process->process->pid = 11;
    process->process->command_line = {"/usr/bin/python3", "train.py"};
    process->alive = true;
    process->events = events;
    made.processes->processes.push_back(std::move(process));
    return made;
}

Looks looks(AgentLook one) {
    Looks made;
    made.push_back(std::move(one));
    return made;
}

using Row = std::vector<std::string>;

}  // namespace

TEST_CASE("top: rates are of the time between two looks, by the agent's own clock") {
    const auto rows = top_rows(looks(look(3'000'000'000, 5000)), looks(look(1'000'000'000, 1000)));
    REQUIRE(rows.size() == 3);
    CHECK(rows[1] == Row{"a", "job", "idle", "1", "2,000", "0", "0.020", "-", "-", "2.0 %"});
    CHECK(rows[2] ==
          Row{"  11", "python3 train.py", "alive", "", "2,000", "0", "0.000", "-", "", ""});
}

TEST_CASE("top: what no look before, another agent or a new capture leaves unknown is no number") {
    CHECK(top_rows(looks(look(3'000'000'000, 5000)), {})[1][4] == "-");
    const auto other = looks(look(1'000'000'000, 1000, 8));
    CHECK(top_rows(looks(look(3'000'000'000, 5000)), other)[1][4] == "-");
    const auto anew = top_rows(looks(look(3'000'000'000, 10)), looks(look(1'000'000'000, 1000)));
    CHECK(anew[2][4] == "-");
    CHECK(top_json(looks(look(3'000'000'000, 5000)), {})[0]["events_per_s"].is_null());
}

TEST_CASE("top: an agent of before there were totals has no rates") {
    AgentLook old = look(3'000'000'000, 0), older = look(1'000'000'000, 0);
    old.status->cpu_ns = older.status->cpu_ns = -1;
    old.status->lost = 3;
    const auto rows = top_rows(looks(std::move(old)), looks(std::move(older)));
    CHECK(rows[1] == Row{"a", "job", "idle", "1", "-", "3", "-", "-", "-", "-"});
}

TEST_CASE("top: a silent agent is a line that says why") {
    Looks now = looks({"ipc:///gone", {}, {}, "nobody\nlistens"});
    CHECK(top_rows(now, {})[1] == Row{"ipc:///gone", "silent: nobody?listens"});
    CHECK(top_json(now, {})[0]["error"] == "nobody\nlistens");
    now.push_back(look(1, 1));
    CHECK(top_summary(now) == "2 nodes, 1 silent, 1 process");
}

TEST_CASE("top: a screen gets as many lines as it has, and none is cut within a character") {
    std::size_t first = 5;
    CHECK(fit_screen("a\nb\nc\n", 2, 10, first) == "b\nc\n");
    CHECK(first == 1);
    CHECK(fit_screen("ab\xc3\xa4z\n", 1, 3, first) == "ab\n");
    CHECK(first == 0);
}

}  // namespace ringside::tools
