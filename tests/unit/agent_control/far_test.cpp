// An agent among those of other hosts: whom it reaches with which key, and its note for as long as it lives.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <future>

#include "agent/control/key.hpp"
#include "agent/control/rendezvous.hpp"
#include "agents.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
namespace fbs = ringside::fbs;

namespace {

struct Served {
    Served(const Folder& folder, const std::string& node, ServerSetup setup)
        : engine(engine_options(folder, node)) {
        if (setup.endpoint.empty())
            setup.endpoint = "ipc://" + folder.path() + "/" + node + ".sock";
        endpoint = setup.endpoint;
        auto bound = Server::bind(engine, setup);
        REQUIRE(bound);
        server = std::move(*bound);
    }
    void serve() {
        thread = std::thread([this] { server->serve(stop.fd()); });
    }
    ~Served() {
        stop.raise();
        if (thread.joinable()) thread.join();
    }

    FakeEngine engine;
    std::string endpoint;
    std::unique_ptr<Server> server;
    Event stop;
    std::thread thread;
};

ServerSetup setup_with(const Key& far, const std::optional<Key>& key = {}) {
    ServerSetup setup;
    setup.key = key;
    setup.far = FarSetup{"127.0.0.1", {}, far};
    return setup;
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("far: an agent leads those that hold the job's key, and those that hold the user's") {
        const Folder folder;
        const Key user = *make_key(), job = *make_key(), other = *make_key();
        Served a(folder, "a", setup_with(job, user));
        Served b(folder, "b", setup_with(job)), c(folder, "c", setup_with(user)),
            d(folder, "d", setup_with(other));
        for (Served* each : {&a, &b, &c, &d}) each->serve();
        auto client = Client::connect(a.endpoint);
        REQUIRE(client);
        fbs::TraceRequestT request;
        request.duration_ms = 20;
        for (const Served* each : {&b, &c, &d})
            request.peers.push_back(each->server->far_endpoint());
        const auto reply = (*client)->trace(request, {});
        REQUIRE(reply);
        REQUIRE(reply->nodes.size() == 4);
        CHECK(reply->nodes[1]->error == "");
        CHECK(reply->nodes[2]->error == "");
        CHECK(reply->nodes[3]->error.find("another key") != std::string::npos);
    }

    TEST_CASE(
        "far: where it is not known yet by what to be reached, who is here is served; then it is "
        "noted") {
        const Folder folder;
        ::setenv("HOME", folder.path().c_str(), 1);
        const Key key = *make_key();
        Served a(folder, "a", {});
        std::promise<std::optional<FarSetup>> known;
        a.server->listen_far(known.get_future(), Milliseconds(1));
        a.serve();
        auto client = Client::connect(a.endpoint);
        REQUIRE(client);
        CHECK((*client)->ask<fbs::StatusReplyT>(fbs::StatusRequestT{}));
        CHECK(noted_agents("4242")->empty());
        FarSetup setup{"127.0.0.1", {}, key};
        setup.note = {"4242", "a", ""};
        known.set_value(setup);
        while (noted_agents("4242")->empty()) {
            // It looks whenever it has something to do.
            REQUIRE((*client)->ask<fbs::StatusReplyT>(fbs::StatusRequestT{}));
        }
        CHECK(Client::connect(noted_agents("4242")->front().endpoint, &key));
        a.stop.raise();
        a.thread.join();
        CHECK(noted_agents("4242")->empty());
    }

    TEST_CASE("far: a note that nobody has kept for a day is an agent's that died, and goes") {
        const Folder folder;
        ::setenv("HOME", folder.path().c_str(), 1);
        const auto note = RendezvousNote::write({"1", "a", "tcp://127.0.0.1:2001"});
        REQUIRE(note);
        const timespec old[2] = {{::time(nullptr) - 25 * 3600, 0},
                                 {::time(nullptr) - 25 * 3600, 0}};
        REQUIRE(::utimensat(AT_FDCWD, note->path().c_str(), old, 0) == 0);
        keep_noted(note->path());
        CHECK(noted_agents("1")->size() == 1);
        REQUIRE(::utimensat(AT_FDCWD, note->path().c_str(), old, 0) == 0);
        CHECK(noted_agents("1")->empty());
        CHECK(::access(note->path().c_str(), F_OK) != 0);
    }

    TEST_CASE("far: a key or a note that could not be written whole is none") {
        const Folder folder;
        ::setenv("HOME", folder.path().c_str(), 1);
        ::signal(SIGXFSZ, SIG_IGN);
        rlimit before{};
        REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
        const rlimit none{20, before.rlim_max};
        REQUIRE(::setrlimit(RLIMIT_FSIZE, &none) == 0);
        const auto key = find_or_make_key("");
        const auto note = RendezvousNote::write({"1", "a", "tcp://127.0.0.1:2001"});
        REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
        CHECK_FALSE(key);
        CHECK_FALSE(note);
        for (const auto& each :
             std::filesystem::recursive_directory_iterator(folder.path() + "/.ringside"))
            CHECK_MESSAGE(each.is_directory(), each.path().string());
        CHECK(find_or_make_key(""));
    }
}
