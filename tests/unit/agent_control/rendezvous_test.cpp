// How agents of a job are found from other hosts: names, notes, ports, keys.
#include <doctest/doctest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "agent/control/key.hpp"
#include "agent/control/rendezvous.hpp"
#include "agents.hpp"
#include "tests/unit/eventually.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
namespace fbs = ringside::fbs;
using ringside::schema::ErrorCode;
using ringside::test::eventually;

namespace {

/// A home of the test's own.
struct Home {
    Home() {
        ::setenv("HOME", folder.path().c_str(), 1);
        ::unsetenv("RINGSIDE_KEY");
    }
    ~Home() { before.empty() ? ::unsetenv("HOME") : ::setenv("HOME", before.c_str(), 1); }

    std::string jobs() const { return folder.path() + "/.ringside/jobs"; }

    std::string before = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
    Folder folder;
};

/// An agent with an ipc endpoint and one for other hosts.
struct FarAgent : Agent {
    FarAgent(const Folder& folder, const std::string& node, std::vector<std::uint16_t> ports,
             const Key& key)
        : Agent(engine_options(folder, node),
                {.endpoint = ipc_endpoint(folder, node),
                 .version = "test",
                 .far = FarSetup{"127.0.0.1", std::move(ports), key}}) {
        REQUIRE(server);
        serve();
    }
};

std::uint16_t port_of(const std::string& endpoint) {
    return static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)));
}

bool answers(const std::string& endpoint, const Key* key) {
    auto client = Client::connect(endpoint, key);
    return client && (*client)->ask<fbs::StatusReplyT>(fbs::StatusRequestT{});
}

bool exists(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE(
        "rendezvous: an array's tasks and a heterogeneous job's components are of one family") {
        CHECK(family_of("4242") == "4242");
        CHECK(family_of("4242_7") == "4242");
        CHECK(family_of("4242+1") == "4242");
        CHECK(family_of("run-a_1") == "run-a_1");
        CHECK(family_of("my_job") == "my_job");
        CHECK(check_member("--job", "4242+1"));
        CHECK_FALSE(check_member("--job", "a+b"));
        CHECK_FALSE(check_member("--job", "../4242"));
        CHECK_FALSE(check_member("--job", ""));
    }

    TEST_CASE(
        "rendezvous: a note is found by the job's name and by its family's, and goes with its "
        "agent") {
        const Home home;
        CHECK(noted_agents("4242")->empty());
        CHECK_FALSE(exists(home.jobs()));
        {
            auto first = RendezvousNote::write({"4242_1", "b", "tcp://127.0.0.1:2001"});
            auto second = RendezvousNote::write({"4242_7", "a", "tcp://127.0.0.1:2002"});
            REQUIRE(first);
            REQUIRE(second);
            const auto all = noted_agents("4242");
            REQUIRE(all->size() == 2);
            CHECK((*all)[0].node == "b");
            CHECK((*all)[1].endpoint == "tcp://127.0.0.1:2002");
            CHECK(noted_agents("4242_7")->size() == 1);
            CHECK(noted_agents("4242_2")->empty());
            CHECK(noted_agents("42")->empty());
            struct stat status {};
            REQUIRE(::stat((home.jobs() + "/4242").c_str(), &status) == 0);
            CHECK((status.st_mode & 0777) == 0700);
        }
        CHECK_FALSE(exists(home.jobs() + "/4242"));
    }

    TEST_CASE(
        "rendezvous: a node's next agent takes the note over, and the first one's end leaves it") {
        const Home home;
        auto first = RendezvousNote::write({"1", "a", "tcp://127.0.0.1:2001"});
        REQUIRE(first);
        auto second = RendezvousNote::write({"1", "a", "tcp://127.0.0.1:2002"});
        REQUIRE(second);
        { const RendezvousNote ends = std::move(*first); }
        REQUIRE(noted_agents("1")->size() == 1);
        CHECK(noted_agents("1")->front().endpoint == "tcp://127.0.0.1:2002");
        forget_agent("1", "a");
        CHECK_FALSE(exists(home.jobs() + "/1"));
    }

    TEST_CASE(
        "rendezvous: what is no note of an agent is passed over, a directory of others' refused") {
        const Home home;
        const auto note = RendezvousNote::write({"1", "a", "tcp://127.0.0.1:2001"});
        REQUIRE(note);
        std::ofstream(home.jobs() + "/1/readme") << "tcp://127.0.0.1:1\n";
        std::ofstream(home.jobs() + "/1/1@half") << "tcp://127.0.0.1:1";
        std::ofstream(home.jobs() + "/1/1@ipc") << "ipc:///tmp/a.sock\n";
        CHECK(noted_agents("1")->size() == 1);
        REQUIRE(::chmod((home.jobs() + "/1").c_str(), 0777) == 0);
        const auto refused = noted_agents("1");
        REQUIRE_FALSE(refused);
        CHECK(refused.error().code == ErrorCode::kRefused);
    }

    TEST_CASE("rendezvous: without a home nothing is noted, found or removed") {
        const Home home;
        const std::string job = "1" + std::to_string(::getpid()), at_root = "/" + job;
        const auto check = [&] {
            const auto note = RendezvousNote::write({job, "a", "tcp://127.0.0.1:2001"});
            REQUIRE_FALSE(note);
            CHECK(note.error().message.find("set HOME") != std::string::npos);
            const auto found = noted_agents(job);
            REQUIRE(found);
            CHECK(found->empty());
            forget_agent(job, "a");
        };
        ::setenv("HOME", "relative", 1);
        check();
        ::unsetenv("HOME");
        if (::mkdir(at_root.c_str(), 0777) != 0) return;
        check();
        CHECK(::rmdir(at_root.c_str()) == 0);
    }

    TEST_CASE("rendezvous: ports are the same everywhere, and four different ones") {
        const auto ports = rendezvous_ports("4242");
        CHECK(ports == rendezvous_ports("4242"));
        CHECK(std::set(ports.begin(), ports.end()).size() == ports.size());
        CHECK(ports != rendezvous_ports("4243"));
        for (const std::uint16_t port : ports) {
            CHECK(port >= 20'000);
            CHECK(port < 32'000);
        }
    }

    TEST_CASE(
        "rendezvous: the user's key is made once; a job's follows from it, and another job's "
        "differs") {
        const Home home;
        const auto key = find_or_make_key("");
        REQUIRE(key);
        CHECK(find_or_make_key("")->secret_half == key->secret_half);
        struct stat status {};
        REQUIRE(::stat((home.folder.path() + "/.ringside/key").c_str(), &status) == 0);
        CHECK((status.st_mode & 0777) == 0600);
        const auto job = job_key(*key, "4242");
        REQUIRE(job);
        CHECK(job->secret_half == job_key(*key, "4242")->secret_half);
        CHECK(job->secret_half != key->secret_half);
        CHECK(job->public_half != job_key(*key, "4243")->public_half);
        CHECK(job->public_half != job_key(*make_key(), "4242")->public_half);
    }

    TEST_CASE(
        "rendezvous: the address is the one that the user names, else one that is not loopback "
        "where there is one") {
        const char* const named = std::getenv("RINGSIDE_ADDRESS");
        const std::string before = named == nullptr ? "" : named;
        ::setenv("RINGSIDE_ADDRESS", "192.0.2.7", 1);
        CHECK(own_address() == "192.0.2.7");
        ::unsetenv("RINGSIDE_ADDRESS");
        ::setenv("MASTER_ADDR", "127.0.0.1", 1);
        ifaddrs* all = nullptr;
        REQUIRE(::getifaddrs(&all) == 0);
        bool others = false;
        for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next)
            others |= (each->ifa_flags & (IFF_UP | IFF_LOOPBACK)) == IFF_UP &&
                      each->ifa_addr != nullptr && each->ifa_addr->sa_family == AF_INET;
        ::freeifaddrs(all);
        CHECK((own_address() != "127.0.0.1") == others);
        ::unsetenv("MASTER_ADDR");
        if (!before.empty()) ::setenv("RINGSIDE_ADDRESS", before.c_str(), 1);
    }

    TEST_CASE(
        "rendezvous: an agent answers who is here without a key, and others with the job's only") {
        const Folder folder;
        const Key key = *make_key(), other = *make_key();
        const FarAgent agent(folder, "a", {}, key);
        CHECK(answers(agent.endpoint, nullptr));
        CHECK(answers(agent.server->far_endpoint(), &key));
        CHECK_FALSE(answers(agent.server->far_endpoint(), &other));
        CHECK_FALSE(answers(agent.server->far_endpoint(), nullptr));
    }

    TEST_CASE("rendezvous: a socket that is bound again still needs no key") {
        const Folder folder;
        const Key key = *make_key();
        const FarAgent agent(folder, "a", {}, key);
        REQUIRE(::unlink((folder.path() + "/a.sock").c_str()) == 0);
        REQUIRE(eventually([&] { return exists(folder.path() + "/a.sock"); }));
        CHECK(answers(agent.endpoint, nullptr));
        CHECK(answers(agent.server->far_endpoint(), &key));
    }

    TEST_CASE("rendezvous: the first free one of the ports is taken, any where none is") {
        const Folder folder;
        const Key key = *make_key();
        const FarAgent a(folder, "a", {}, key);
        const std::uint16_t taken = port_of(a.server->far_endpoint());
        std::uint16_t free = 0;
        {
            const FarAgent b(folder, "b", {taken}, key);
            free = port_of(b.server->far_endpoint());
            CHECK(free != taken);
            CHECK(answers(b.server->far_endpoint(), &key));
        }
        const FarAgent c(folder, "c", {taken, free}, key);
        CHECK(port_of(c.server->far_endpoint()) == free);
    }

    TEST_CASE(
        "rendezvous: an agent that was asked on its own host leads those that it reaches over "
        "tcp") {
        const Folder folder;
        const Key key = *make_key();
        const FarAgent a(folder, "a", {}, key), b(folder, "b", {}, key);
        auto client = Client::connect(a.endpoint);
        REQUIRE(client);
        fbs::TraceRequestT request;
        request.peers = {b.server->far_endpoint()};
        request.duration_ms = 20;
        const auto reply = (*client)->trace(request, {});
        REQUIRE(reply);
        REQUIRE(reply->nodes.size() == 2);
        for (const auto& node : reply->nodes) CHECK(node->error.empty());
    }
}
