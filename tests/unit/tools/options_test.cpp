// What the user types, spelled right and wrong.
#include "tools/ringside/options.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {

using ringside::schema::ErrorCode;
using ringside::tools::parse_bytes;
using ringside::tools::parse_duration_ms;
using ringside::tools::parse_hosts;
using ringside::tools::parse_pids;
using ringside::tools::split_command;
using Words = std::vector<std::string>;

TEST_CASE("duration: each unit") {
    CHECK(*parse_duration_ms("500ms") == 500);
    CHECK(*parse_duration_ms("2s") == 2000);
    CHECK(*parse_duration_ms("1.5s") == 1500);
    CHECK(*parse_duration_ms("3m") == 180'000);
    CHECK(*parse_duration_ms("24h") == 86'400'000);
    CHECK(*parse_duration_ms("1ms") == 1);
}

TEST_CASE("duration: what is none is a usage error that names it") {
    for (const char* text :
         {"", "500", "ms", "-1s", "0s", "1e99s", "25h", "2 s", "2sec", "nans", "infs", "0.4ms"}) {
        CAPTURE(text);
        const auto parsed = parse_duration_ms(text);
        REQUIRE_FALSE(parsed);
        CHECK(parsed.error().code == ErrorCode::kUsage);
        CHECK(parsed.error().message.find("'" + std::string(text) + "'") != std::string::npos);
    }
}

TEST_CASE("duration: the message names the option that it is of") {
    CHECK(parse_duration_ms("5", "--history").error().message.rfind("--history: '5'", 0) == 0);
}

TEST_CASE("sources: their names make a mask, none is all") {
    using ringside::tools::parse_sources;
    CHECK(*parse_sources("") == 0xffffffffu);
    CHECK(*parse_sources("torch") == 1u << 1);
    CHECK(*parse_sources("grpc") == 1u << 3);
    CHECK(*parse_sources("mpi") == 1u << 4);
    CHECK(*parse_sources("nvtx,itt") == (1u << 2 | 1u << 7));
    for (const char* text : {"none", "torch,", "Torch", "all", "mpich", "torch,mpich"}) {
        CAPTURE(text);
        REQUIRE_FALSE(parse_sources(text));
        CHECK(parse_sources(text).error().code == ErrorCode::kUsage);
    }
}

TEST_CASE("hosts: one, several, in their order") {
    CHECK(*parse_hosts("ipc:///a.sock") == Words{"ipc:///a.sock"});
    CHECK(*parse_hosts("ipc:///b,ipc:///a") == Words{"ipc:///b", "ipc:///a"});
}

TEST_CASE("hosts: what is no endpoint is a usage error") {
    for (const char* text :
         {"", ",", "ipc:///a,", "ipc:///", "ipc://a", "a.sock", "ipc:///a,ipc:///a"}) {
        CAPTURE(text);
        const auto parsed = parse_hosts(text);
        REQUIRE_FALSE(parsed);
        CHECK(parsed.error().code == ErrorCode::kUsage);
    }
}

TEST_CASE("hosts: a host and a port are short for tcp") {
    const auto parsed = parse_hosts("ipc:///a,tcp://127.0.0.1:4000,node7:4001");
    REQUIRE(parsed);
    CHECK(*parsed ==
          std::vector<std::string>{"ipc:///a", "tcp://127.0.0.1:4000", "tcp://node7:4001"});
    for (const char* text : {"node7", "node7:", "node7:x", "node7:1,tcp://node7:1"}) {
        CAPTURE(text);
        CHECK(parse_hosts(text).error().code == ErrorCode::kUsage);
    }
}

TEST_CASE("pids: lists and single ones together; zero and words are usage errors") {
    CHECK(*parse_pids({"12", "13,14"}) == std::vector<std::int32_t>{12, 13, 14});
    for (const char* text : {"0", "-1", "x", "12x", "", "1,,2", "99999999999"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_pids({text}));
    }
}

TEST_CASE("ranks and names: lists and single ones together; what is none is a usage error") {
    using ringside::tools::parse_names;
    using ringside::tools::parse_ranks;
    CHECK(*parse_ranks({"0", "3,12"}) == std::vector<std::int32_t>{0, 3, 12});
    for (const char* text : {"-1", "x", "", "0,", "1-3"}) {
        CAPTURE(text);
        CHECK(parse_ranks({text}).error().message.rfind("--rank: '", 0) == 0);
    }
    CHECK(*parse_names({"a", "b,c"}, "--host") == Words{"a", "b", "c"});
    CHECK(parse_names({"a,,b"}, "--host").error().code == ErrorCode::kUsage);
}

TEST_CASE("run's words: our options end at the first word that is none, or at --") {
    const Words valued = {"-o", "--table"};
    CHECK(split_command({"ls", "-l"}, valued).command == Words{"ls", "-l"});
    const auto with_value = split_command({"-o", "dir", "ls", "-o", "x"}, valued);
    CHECK(with_value.own == Words{"-o", "dir"});
    CHECK(with_value.command == Words{"ls", "-o", "x"});
    CHECK(split_command({"--json", "--", "--odd"}, valued).command == Words{"--odd"});
    CHECK(split_command({"--table=f", "ls"}, valued).own == Words{"--table=f"});
    CHECK(split_command({"--nonsense", "ls"}, valued).own == Words{"--nonsense"});
    CHECK(split_command({"-o"}, valued).command.empty());
    CHECK(split_command({}, valued).command.empty());
}

}  // namespace

TEST_CASE("bytes: plain, with a unit, and what is none") {
    CHECK(*parse_bytes("1048576") == 1 << 20);
    CHECK(*parse_bytes("1024K") == 1 << 20);
    CHECK(*parse_bytes("1.5MiB") == 1'572'864);
    CHECK(*parse_bytes("2GB") == 2ull << 30);
    for (const char* wrong :
         {"", "K", "1", "64K", "2000k", "2000Kib", "1000000iB", "-5M", "1e300", "nanM", "2000K 1"})
        CHECK_MESSAGE(!parse_bytes(wrong), wrong);
}
