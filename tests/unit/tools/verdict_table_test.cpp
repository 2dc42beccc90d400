// What `trace` tells of each process, at the widths of terminals.
#include "tools/ringside/verdict_table.hpp"

#include <doctest/doctest.h>

#include <sstream>

#include "tools/ringside/words.hpp"

namespace {

namespace fbs = ringside::fbs;
using ringside::tools::verdict_table;
using Lines = std::vector<std::string>;

fbs::ProcessVerdictT& add(fbs::TraceReplyT& reply, int pid, int rank, fbs::Verdict verdict,
                          const std::string& reason, std::uint64_t events) {
    reply.verdicts.push_back(std::make_unique<fbs::ProcessVerdictT>());
    fbs::ProcessVerdictT& process = *reply.verdicts.back();
    process.pid = process.host_pid = pid;
    process.rank = rank;
    process.verdict = verdict;
    process.reason = reason;
    process.events = events;
    process.command = "python3 -m training.main --configuration /data/experiments/large.yaml";
    return process;
}

fbs::TraceReplyT sample() {
    fbs::TraceReplyT reply;
    reply.nodes.push_back(std::make_unique<fbs::TraceNodeT>());
    reply.nodes[0]->name = "n1";
    reply.nodes[0]->host = "host7";
    add(reply, 13, 1, fbs::Verdict::Hung, "stopped: state T; it did not attach within 2 s", 0);
    auto& good = add(reply, 12, 0, fbs::Verdict::Captured, "", 1234567);
    good.bytes = 3 << 20;
    good.start_delay_ns = 1'500'000;
    good.sources.push_back(std::make_unique<fbs::SourceT>());
    good.sources[0]->id = 1;
    good.sources[0]->level = fbs::SourceLevel::Full;
    for (int pid = 20; pid < 55; ++pid)
        add(reply, pid, 0, fbs::Verdict::NothingRecorded, "no framework loaded", 0);
    return reply;
}

Lines lines_of(const std::string& text) {
    std::istringstream all(text);
    Lines lines;
    for (std::string line; std::getline(all, line);) lines.push_back(line);
    return lines;
}

TEST_CASE("verdicts: a line each where they fit, by rank, the ones that are not good marked") {
    const Lines lines = lines_of(verdict_table(sample(), 200));
    REQUIRE(lines.size() == 4);
    CHECK(lines[0].find("COMMAND") != std::string::npos);
    for (const char* word : {"n1/host7", "12", "python3 -m training", "torch full", "1,234,567",
                             "3.0 MiB", "1.500 ms", "captured"})
        CHECK_MESSAGE(lines[1].find(word) != std::string::npos, word);
    CHECK(lines[1][0] == ' ');
    CHECK(lines[2][0] == '!');
    CHECK(lines[2].find("hung: stopped: state T") != std::string::npos);
    CHECK(lines[3] == "  35 more recorded nothing: no framework");
    // Aligned: what follows begins in the same column.
    CHECK(lines[0].find("VERDICT") == lines[1].find("captured"));
    CHECK(lines[0].find("VERDICT") == lines[2].find("hung"));
}

TEST_CASE("verdicts: no line is longer than the terminal is wide, and nothing is missing") {
    for (std::size_t width = 80; width <= 200; width += 5) {
        CAPTURE(width);
        const std::string text = verdict_table(sample(), width);
        for (const std::string& line : lines_of(text)) CHECK(line.size() <= width);
        for (const char* word : {"torch full", "python3 -m", "state T", "1,234,567", "35 more"})
            CHECK_MESSAGE(text.find(word) != std::string::npos, word);
    }
}

TEST_CASE("verdicts: nobody, and only those without a framework") {
    fbs::TraceReplyT reply;
    CHECK(verdict_table(reply, 80).empty());
    add(reply, 1, -1, fbs::Verdict::NothingRecorded, "no framework loaded", 0);
    CHECK(verdict_table(reply, 80) == "  1 recorded nothing: no framework\n");
}

TEST_CASE("verdicts: of very many those that are well are told together, the others each") {
    fbs::TraceReplyT reply;
    for (int pid = 1; pid <= 300; ++pid) add(reply, pid, pid, fbs::Verdict::Captured, "", 1);
    CHECK(verdict_table(reply, 200) ==
          "  300 as they should be, without a loss (--json names each)\n");
    reply.verdicts[5]->lost = 7;
    reply.verdicts[6]->verdict = fbs::Verdict::Hung;
    add(reply, 301, -1, fbs::Verdict::NothingRecorded, "no framework loaded", 0);
    const Lines lines = lines_of(verdict_table(reply, 200));
    REQUIRE(lines.size() == 5);
    CHECK(lines[1][0] == ' ');
    CHECK(lines[2][0] == '!');
    CHECK(lines[3] == "  298 more as they should be, without a loss (--json names each)");
    CHECK(lines[4] == "  1 more recorded nothing: no framework");
    reply.verdicts.resize(256);
    CHECK(lines_of(verdict_table(reply, 200)).size() == 257);
}

TEST_CASE("verdicts: what a job calls itself does not break the line, nor is a character cut") {
    fbs::TraceReplyT reply;
    add(reply, 1, 0, fbs::Verdict::Captured, "", 1).command = "a\nb\x1b[2J";
    CHECK(lines_of(verdict_table(reply, 200)).size() == 2);
    std::string wide;
    for (int i = 0; i < 100; ++i) wide += "\xc3\xa4";
    reply.verdicts[0]->command = wide;
    const std::string text = verdict_table(reply, 200);
    CHECK(text.find("\xc3...") == std::string::npos);
    CHECK(text.find("\xc3\xa4...") != std::string::npos);
}

}  // namespace
