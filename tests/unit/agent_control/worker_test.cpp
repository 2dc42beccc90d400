// A worker's queue: turns, shares, and what becomes of it at the end.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "agent/control/worker.hpp"
#include "agents.hpp"
#include "by_hand.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
namespace fbs = ringside::fbs;

namespace {

/// Holds a worker until it is let go.
class Held {
public:
    explicit Held(Worker& worker) {
        REQUIRE(worker.submit_own([this, let_go = let_go_.get_future().share()] {
            begun_.set_value();
            let_go.wait();
        }));
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

/// No thread can be made in here: this user, whoever it is, has as many processes as it may have. Its own limit binds root not.
bool refused_without_threads() {
    const auto refused = [](fbs::MessageT message) {
        const auto* error = content_as<fbs::ErrorReplyT>(message);
        return error != nullptr && error_of(*error).message.find("no thread") != std::string::npos;
    };
    if (::getuid() == 0 && ::setresuid(54321, 54321, 54321) != 0) return false;
    const Folder folder;
    Agent agent(folder, "a");
    agent.serve();
    ByHand client(agent.endpoint);
    rlimit before{};
    if (::getrlimit(RLIMIT_NPROC, &before) != 0) return false;
    const rlimit none{1, before.rlim_max};
    if (::setrlimit(RLIMIT_NPROC, &none) != 0) return false;
    bool good = true;
    client.say(fbs::StatusRequestT{});
    good &= refused(client.hear());
    client.say(fbs::TraceRequestT{});
    good &= refused(client.hear());
    good &= refused(client.open({ipc_endpoint(folder, "b")}));
    if (::setrlimit(RLIMIT_NPROC, &before) != 0) return false;
    client.say(fbs::StatusRequestT{});
    auto status = client.hear();
    return good && content_as<fbs::StatusReplyT>(status) != nullptr;
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("server: where there can be no thread it refuses, and lives") {
        const pid_t child = ::fork();
        if (child == 0) {
            try {
                ::_exit(refused_without_threads() ? 0 : 1);
            } catch (...) {
                ::_exit(2);
            }
        }
        int status = -1;
        REQUIRE(::waitpid(child, &status, 0) == child);
        CHECK(status == 0);
    }

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
        CHECK(worker.submit_own([] {}));
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
            CHECK(worker->submit_own([&] { log.emplace_back("own"); }));
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
