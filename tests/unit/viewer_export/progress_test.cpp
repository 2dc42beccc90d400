// What reading, the table and the export tell of how far they are.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "big_dump.hpp"
#include "files.hpp"
#include "viewer_export/load/job_loader.hpp"
#include "viewer_export/out/table.hpp"
#include "viewer_export/out/trace.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export;

namespace {

constexpr std::uint64_t kRanges = 40'000;

struct Told {
    std::string what;
    std::vector<std::uint64_t> done;
    std::uint64_t total;
};

/// @return what is told of each stage, in order
model::Tell noted_in(std::vector<Told>& stages) {
    return [&stages](const char* what, std::uint64_t done, std::uint64_t total) {
        if (stages.empty() || stages.back().what != what) stages.push_back({what, {}, total});
        CHECK(stages.back().total == total);
        CHECK(done <= total);
        if (!stages.back().done.empty()) CHECK(done >= stages.back().done.back());
        stages.back().done.push_back(done);
    };
}

struct BigJob {
    BigJob() {
        make_big_dump(kRanges / 2, false, directory / "alpha.rsd");
        std::filesystem::create_directory(directory / "more");
        make_big_dump(kRanges, true, directory / "more" / "alpha.rsd");
        auto read = load_job({{directory / "alpha.rsd", directory / "more" / "alpha.rsd"},
                              true,
                              {},
                              noted_in(stages)});
        REQUIRE(read);
        job = std::move(*read);
    }
    TemporaryDirectory directory;
    std::vector<Told> stages;
    model::Job job;
};

}  // namespace

TEST_CASE("progress: reading goes on over all dumps to their last byte, then come the events") {
    const BigJob big;
    REQUIRE(big.stages.size() == 2);
    CHECK(big.stages[0].what == "reading dumps");
    CHECK(big.stages[0].total ==
          std::filesystem::file_size(big.directory / "alpha.rsd") +
              std::filesystem::file_size(big.directory / "more" / "alpha.rsd"));
    CHECK(big.stages[0].done.back() == big.stages[0].total);
    CHECK(big.stages[1].what == "putting events in order");
    CHECK(big.stages[1].total == big.job.ranges());
    CHECK(big.stages[1].done.size() == big.job.lanes.size());
}

TEST_CASE("progress: the table tells how many of all ranges it has added up") {
    const BigJob big;
    std::vector<Told> stages;
    REQUIRE(render_table(big.job, {.tell = noted_in(stages)}));
    REQUIRE(stages.size() == 1);
    CHECK(stages[0].what == "adding up");
    CHECK(stages[0].total == big.job.ranges());
    CHECK(stages[0].done.size() == big.job.lanes.size());
}

TEST_CASE("progress: the export tells how many of all events it has written") {
    const BigJob big;
    std::vector<Told> stages;
    REQUIRE(write_chrome(big.job, big.directory / "trace.json", {.tell = noted_in(stages)}));
    REQUIRE(stages.size() == 1);
    CHECK(stages[0].what == "writing events");
    CHECK(stages[0].total == big.job.ranges());
    CHECK(stages[0].done.size() == 3);
    CHECK(stages[0].done.back() > kRanges * 3 / 4);
}
