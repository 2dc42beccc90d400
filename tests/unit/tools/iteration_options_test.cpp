// `ringside trace --iterations`: what the user types, and what the answer says.
#include "tools/ringside/iteration_options.hpp"

#include <doctest/doctest.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "temporary_directory.hpp"
#include "tests/unit/agent_control/old_agent.hpp"

namespace {

using namespace ringside;
using namespace ringside::tools;

/// @return what CLI11 thinks of the words; 0: they fit
int parsed(IterationOptions& options, const std::string& words) {
    CLI::App app;
    add_iteration_options(app, options);
    try {
        app.parse(words);
    } catch (const CLI::Error& error) {
        return error.get_exit_code();
    }
    return 0;
}

fbs::ProcessVerdictT process_with(const std::string& name, std::uint32_t count, bool beside) {
    fbs::ProcessVerdictT process;
    process.iterations = std::make_unique<fbs::IterationsT>();
    process.iterations->name = name;
    process.iterations->asked = 5;
    process.iterations->count = count;
    process.iterations->first = 3;
    process.iterations->beside = beside;
    return process;
}

TEST_CASE("iterations: without the option nothing is asked for, and the others need it") {
    IterationOptions options;
    CHECK(parsed(options, "") == 0);
    CHECK_FALSE(options.given());
    fbs::TraceRequestT request;
    CHECK(put_iterations(options, request));
    CHECK(request.iterations == 0);
    for (const char* words : {"--iterations-of x", "--start-iteration-roundup 2", "--timeout 2s"}) {
        IterationOptions alone;
        CHECK(parsed(alone, words) != 0);
    }
}

TEST_CASE("iterations: the request has what was typed, and defaults for the rest") {
    IterationOptions options;
    REQUIRE(parsed(options, "--iterations 5") == 0);
    fbs::TraceRequestT request;
    REQUIRE(put_iterations(options, request));
    CHECK(request.iterations == 5);
    CHECK(request.start_roundup == 1);
    CHECK(request.timeout_ms == 60'000);
    CHECK(request.iterations_of.empty());
    IterationOptions all;
    REQUIRE(parsed(all,
                   "--iterations 7 --iterations-of 'my step' --start-iteration-roundup 100 "
                   "--timeout 2m") == 0);
    REQUIRE(put_iterations(all, request));
    CHECK(request.iterations == 7);
    CHECK(request.iterations_of == "my step");
    CHECK(request.start_roundup == 100);
    CHECK(request.timeout_ms == 120'000);
}

TEST_CASE("iterations: what is no number or no time is a usage error that names its option") {
    for (const char* count : {"0", "-1", "x", "5s", "1.5", "100001", ""}) {
        CAPTURE(count);
        fbs::TraceRequestT request;
        IterationOptions roundup{"5", "", count, ""};
        const auto wrong = put_iterations(roundup, request);
        if (*count == 0) {
            CHECK(wrong);
            continue;
        }
        REQUIRE_FALSE(wrong);
        CHECK(wrong.error().code == schema::ErrorCode::kUsage);
        CHECK(wrong.error().message.rfind("--start-iteration-roundup: '", 0) == 0);
        CHECK_FALSE(put_iterations({count, "", "", ""}, request));
    }
    fbs::TraceRequestT request;
    const auto wrong = put_iterations({"5", "", "", "9"}, request);
    REQUIRE_FALSE(wrong);
    CHECK(wrong.error().message.rfind("--timeout: '9'", 0) == 0);
}

TEST_CASE("iterations: the answer's words, and who lacks some") {
    const auto whole = process_with("step", 5, false), short_of = process_with("step", 1, false);
    const auto beside = process_with("", 0, true), none = process_with("", 0, false);
    CHECK(iterations_text(whole) == "5 iterations of step from boundary 3");
    CHECK(iterations_text(short_of) == "1 iteration of step from boundary 3");
    CHECK(iterations_text(beside) == "none of its own iterations");
    CHECK(iterations_text(none) == "no iterations");
    CHECK(iterations_text({}) == "");
    CHECK(has_its_iterations(whole));
    CHECK_FALSE(has_its_iterations(short_of));
    CHECK(has_its_iterations(beside));
    CHECK_FALSE(has_its_iterations(none));
    CHECK(has_its_iterations({}));
}

TEST_CASE(
    "iterations: a leader that would capture for a time instead is refused before it starts") {
    const TemporaryDirectory folder;
    agent::test::OldAgent old((folder.path() / "agent.sock").string());
    const auto client = agent::Client::connect(old.endpoint);
    REQUIRE(client);
    fbs::TraceRequestT plain, iterations, rank, executable, limit, start;
    plain.pids = {12};
    iterations.iterations = 5;
    rank.ranks = {0};
    executable.executables = {"python3"};
    limit.limit = 1;
    start.start_time_ns = 1;
    CHECK(check_leader(plain, **client));
    for (const auto* request : {&iterations, &rank, &executable, &limit, &start}) {
        const auto refused = check_leader(*request, **client);
        REQUIRE_FALSE(refused);
        CHECK(refused.error().code == schema::ErrorCode::kRefused);
        CHECK(refused.error().message.find("version 0.1.0") != std::string::npos);
    }
    CHECK(old.orders == 0);
}

TEST_CASE("iterations: where nobody had any, that is not taken for a good trace") {
    const IterationOptions options{"5", "", "", ""};
    fbs::TraceReplyT reply;
    CHECK(lacks_all_iterations(options, reply));
    CHECK_FALSE(lacks_all_iterations({}, reply));
    reply.verdicts.push_back(std::make_unique<fbs::ProcessVerdictT>(process_with("", 0, true)));
    CHECK(lacks_all_iterations(options, reply));
    reply.verdicts.push_back(std::make_unique<fbs::ProcessVerdictT>(process_with("s", 1, false)));
    CHECK_FALSE(lacks_all_iterations(options, reply));
}

}  // namespace
