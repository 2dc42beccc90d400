// Many asked at the same time.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "agent/control/at_once.hpp"

using namespace ringside::agent;

TEST_SUITE("unit") {
    TEST_CASE("at once: all are at it at the same time, up to the bound") {
        std::mutex mutex;
        std::condition_variable all;
        std::size_t begun = 0, met = 0;
        at_once(kMostAtOnce, [&](std::size_t) {
            std::unique_lock lock(mutex);
            ++begun;
            all.notify_all();
            const auto patience = std::chrono::seconds(20);
            met += all.wait_for(lock, patience, [&] { return begun == kMostAtOnce; }) ? 1 : 0;
        });
        CHECK(met == kMostAtOnce);
    }

    TEST_CASE("at once: of more than the bound each is done, once, and told of") {
        constexpr std::size_t kMany = 5 * kMostAtOnce;
        std::vector<std::atomic<int>> times(kMany);
        std::vector<std::size_t> told;
        std::atomic<std::size_t> now{0}, most{0};
        at_once(
            kMany,
            [&](std::size_t n) {
                const std::size_t here = ++now;
                for (std::size_t seen = most;
                     here > seen && !most.compare_exchange_weak(seen, here);) {
                }
                ++times[n];
                --now;
            },
            [&](std::size_t done) { told.push_back(done); });
        for (const auto& each : times) CHECK(each == 1);
        std::vector<std::size_t> wanted(kMany);
        std::iota(wanted.begin(), wanted.end(), std::size_t{1});
        CHECK(told == wanted);
        CHECK(most <= kMostAtOnce);
    }

    TEST_CASE("at once: of none nothing is done, of one in the caller's thread") {
        at_once(0, [](std::size_t) { FAIL("there is none"); });
        std::thread::id where;
        at_once(1, [&](std::size_t) { where = std::this_thread::get_id(); });
        CHECK(where == std::this_thread::get_id());
    }

    TEST_CASE("at once: what one throws is thrown here, and the others are done") {
        std::atomic<int> done{0};
        const auto work = [&](std::size_t n) {
            if (n % 10 == 3) throw std::runtime_error("no");
            ++done;
        };
        CHECK_THROWS_AS(at_once(100, work), std::runtime_error);
        CHECK(done == 90);
    }
}
