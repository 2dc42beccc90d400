// Dumps of a job that never ran, joined as they are read: what must come of them is known, and how much is kept meanwhile.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "synthetic_dumps.hpp"
#include "temporary_directory.hpp"
#include "tools/ringside/offline_join.hpp"
#include "viewer_export/load/job_loader.hpp"

using namespace ringside;
using tests::SyntheticJob;
using tools::TemporaryDirectory;

namespace {

struct Joined {
    tests::SyntheticTruth truth;
    tools::OfflineJoin result;
};

Joined joined(const SyntheticJob& job, const std::string& folder) {
    Joined joined;
    joined.truth = write_synthetic(job, folder);
    const auto dumps = viewer_export::dumps_among({folder});
    REQUIRE(dumps);
    REQUIRE(dumps->size() == job.nodes);
    auto index = agent::IndexWriter::create(folder);
    REQUIRE(index);
    auto result = tools::join_offline(*dumps, true, **index);
    REQUIRE(result);
    joined.result = *result;
    CHECK(joined.result.halves == joined.truth.halves);
    CHECK(joined.result.counts.order_violations == 0);
    return joined;
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("offline join: finds every request of skewed nodes, whole or single") {
        for (const std::uint32_t nodes : {1, 2, 7}) {
            for (const double loss : {0.0, 0.1}) {
                const TemporaryDirectory folder;
                SyntheticJob job;
                job.nodes = nodes;
                job.halves = 20'000;
                job.skew_ns = 1'000'000'000;
                job.loss = loss;
                const Joined all = joined(job, folder.path());
                CHECK(all.result.counts.joined_requests == all.truth.whole);
                CHECK(all.result.counts.joined_replies == all.truth.whole);
                CHECK(all.result.counts.orphans + all.result.counts.cut == all.truth.single);
                CHECK(all.result.counts.ambiguous == 0);
            }
        }
    }

    TEST_CASE("offline join: finds every message of skewed nodes, among requests and without any") {
        for (const double messages : {0.5, 1.0}) {
            const TemporaryDirectory folder;
            SyntheticJob job;
            job.nodes = 7;
            job.halves = 40'000;
            job.skew_ns = 1'000'000'000;
            job.messages = messages;
            const Joined all = joined(job, folder.path());
            CHECK(all.truth.messages > 5'000);
            CHECK(all.result.counts.joined_requests == all.truth.whole);
            CHECK(all.result.counts.joined_replies == all.truth.whole - all.truth.messages);
            CHECK(all.result.counts.ambiguous == 0);
        }
    }

    TEST_CASE("offline join: of messages is kept what was sent and not yet received") {
        std::vector<std::size_t> most;
        for (const std::uint64_t halves : {100'000, 400'000}) {
            const TemporaryDirectory folder;
            SyntheticJob job;
            job.nodes = 4;
            job.halves = halves;
            job.skew_ns = 1'000'000;
            job.messages = 1;
            most.push_back(joined(job, folder.path()).result.most_open);
        }
        MESSAGE("kept at once: " << most[0] << " of 100000 halves, " << most[1] << " of 400000");
        CHECK(most[1] < most[0] * 3 / 2);
        CHECK(most[1] < 400'000 / 5);
    }

    TEST_CASE("offline join: numbers that start again after a while are told apart by time") {
        const TemporaryDirectory folder;
        SyntheticJob job;
        job.nodes = 3;
        job.halves = 120'000;
        job.ids = 7'000;  // of 10,000: those that come once tell the clocks
        const Joined all = joined(job, folder.path());
        CHECK(all.result.counts.joined_requests == all.truth.whole);
        CHECK(all.result.counts.ambiguous == 0);
    }

    TEST_CASE("offline join: what is kept is bounded by what is open, not by what there is") {
        std::vector<std::size_t> most;
        for (const std::uint64_t halves : {100'000, 400'000}) {
            const TemporaryDirectory folder;
            SyntheticJob job;
            job.nodes = 16;
            job.halves = halves;
            job.skew_ns = 1'000'000;
            most.push_back(joined(job, folder.path()).result.most_open);
        }
        MESSAGE("kept at once: " << most[0] << " of 100000 halves, " << most[1] << " of 400000");
        CHECK(most[1] < most[0] * 5 / 4);
        CHECK(most[1] < 400'000 / 10);
    }

    TEST_CASE("offline join: dumps in chunks of seconds are kept no longer for that") {
        const TemporaryDirectory folder;
        SyntheticJob job;
        job.nodes = 4;
        job.halves = 200'000;
        job.flush_ns = 1'000'000'000'000;
        const Joined all = joined(job, folder.path());
        CHECK(all.result.counts.joined_requests == all.truth.whole);
        CHECK(all.result.most_open < 200'000 / 5);
    }

    TEST_CASE("offline join: packed chunks live as long as somebody reads in them") {
        const TemporaryDirectory folder;
        SyntheticJob job;
        job.nodes = 3;
        job.halves = 60'000;
        job.packed = true;
        job.flush_ns = 10'000'000;
        const Joined all = joined(job, folder.path());
        CHECK(all.result.counts.joined_requests == all.truth.whole);
    }

    TEST_CASE("offline join: a loaded job says the same as its index") {
        const TemporaryDirectory folder;
        SyntheticJob job;
        job.nodes = 3;
        job.halves = 30'000;
        job.loss = 0.05;
        const Joined all = joined(job, folder.path());
        const auto loaded = viewer_export::load_job({{folder.path()}});
        REQUIRE(loaded);
        CHECK(loaded->damage.empty());
        CHECK(loaded->totals.joined_requests == all.truth.whole);
        CHECK(loaded->totals.orphans + loaded->totals.cut == all.truth.single);
        const auto nested = std::count_if(
            loaded->calls.begin(), loaded->calls.end(),
            [](const auto& call) { return call.parent != viewer_export::model::kNone; });
        CHECK(nested > 0);
    }
}
