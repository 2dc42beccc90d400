// A worker's queue: turns, shares, and what becomes of it at the end.
#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "agent/control/worker.hpp"

using namespace ringside::agent;

namespace {

/// Holds a worker until it is let go.
class Held {
public:
    explicit Held(Worker& worker) {
        worker.submit_own([this, let_go = let_go_.get_future().share()] {
            begun_.set_value();
            let_go.wait();
        });
        begun_.get_future().wait();
    }
    void let_go() { let_go_.set_value(); }

private:
    std::promise<void> begun_;
    std::promise<void> let_go_;
};

Worker::Task noting(std::vector<std::string>& log, const std::string& what, std::size_t bytes = 0) {
    return {[&log, what] { log.push_back(what); }, [&log, what] { log.push_back(what + ", not"); },
            bytes};
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("worker: who asks much waits for himself, in order, and others have their turn") {
        std::vector<std::string> log;
        std::promise<void> last;
        Worker worker;
        Held held(worker);
        for (const char* what : {"a1", "a2", "a3"}) CHECK(worker.submit("a", noting(log, what)));
        CHECK(worker.submit("b", noting(log, "b1")));
        CHECK(worker.submit("c", noting(log, "c1")));
        CHECK(worker.submit("b", noting(log, "b2")));
        CHECK(worker.submit("a", {[&] { last.set_value(); }, {}}));
        held.let_go();
        last.get_future().wait();
        CHECK(log == std::vector<std::string>{"a1", "b1", "c1", "a2", "b2", "a3"});
    }

    TEST_CASE("worker: nobody has more than his share of the queue") {
        std::vector<std::string> log;
        Worker worker;
        Held held(worker);
        const auto filled = [&](const std::string& whose) {
            std::size_t taken = 0;
            while (taken <= kMostTasksOfAll && worker.submit(whose, noting(log, whose))) ++taken;
            return taken;
        };
        for (int each = 0; each < 127; ++each)
            CHECK(filled("flood " + std::to_string(each)) == kMostTasksOfOne);
        CHECK(filled("honest") == kMostTasksOfOne);
        worker.submit_own([] {});
        CHECK(filled("one too many") == 0);
        held.let_go();
    }

    TEST_CASE("worker: bytes that wait are bounded, and in a crowd each has few") {
        std::vector<std::string> log;
        Worker worker;
        Held held(worker);
        CHECK(worker.submit("a", noting(log, "a", kMostTaskBytes)));
        CHECK_FALSE(worker.submit("a", noting(log, "a", 1)));
        CHECK(worker.submit("b", noting(log, "b", kTaskBytesInACrowd)));
        CHECK_FALSE(worker.submit("b", noting(log, "b", 1)));
        CHECK_FALSE(worker.submit("c", noting(log, "c", kTaskBytesInACrowd + 1)));
        held.let_go();
    }

    TEST_CASE("worker: at the end it does what must be done, and drops the rest") {
        std::vector<std::string> log;
        {
            auto worker = std::make_unique<Worker>();
            Held held(*worker);
            CHECK(worker->submit("a", noting(log, "a1")));
            CHECK(worker->submit("a", {[&] { log.emplace_back("stop"); }, {}}));
            worker->submit_own([&] { log.emplace_back("own"); });
            CHECK(worker->submit("b", noting(log, "b1")));
            std::thread end([&] { worker.reset(); });
            // It is waited for, and not before that: the end itself lets go.
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            held.let_go();
            end.join();
        }
        CHECK(log == std::vector<std::string>{"a1, not", "own", "b1, not", "stop"});
    }
}
