// Which endpoints a job's name stands for: notes, Slurm's word, and where the two don't agree.
#include "tools/ringside/job_agents.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "agent/control/rendezvous.hpp"
#include "fake_slurm.hpp"
#include "tests/unit/agent_control/agents.hpp"

using namespace ringside;
using namespace ringside::tools;

namespace {

/// A home with a key, and an agent of job 4242 that other hosts may ask.
struct Rig {
    /// @param member  the job by which it is noted itself; empty: not at all
    explicit Rig(const std::string& member = "") {
        ::setenv("HOME", folder.path().c_str(), 1);
        ::setenv("RINGSIDE_DIR", (folder.path() + "/none").c_str(), 1);
        ::unsetenv("RINGSIDE_KEY");
        const auto ports = agent::rendezvous_ports("4242");
        key = *agent::job_key(*agent::find_or_make_key(""), "4242");
        auto bound = agent::Server::bind(
            engine,
            {.endpoint = "ipc://" + folder.path() + "/agent.sock",
             .version = "test",
             .far = agent::FarSetup{
                 "127.0.0.1", {ports.begin(), ports.end()}, key, {member, "own-name", ""}}});
        REQUIRE(bound);
        server = std::move(*bound);
        thread = std::thread([this] { server->serve(stop.fd()); });
    }
    ~Rig() {
        stop.raise();
        thread.join();
        ::unsetenv("RINGSIDE_DIR");
    }
    agent::RendezvousNote note(const std::string& node, const std::string& endpoint) {
        auto note = agent::RendezvousNote::write({"4242", node, endpoint});
        REQUIRE(note);
        return std::move(*note);
    }
    const std::string& endpoint() const { return server->far_endpoint(); }
    static std::vector<std::string> found() {
        const auto agents = find_job_agents("4242", "");
        REQUIRE_MESSAGE(agents, (agents ? "" : agents.error().message));
        return agents->endpoints;
    }

    agent::test::Folder folder;
    agent::Key key;
    agent::test::FakeEngine engine{agent::test::engine_options(folder, "own-name")};
    std::unique_ptr<agent::Server> server;
    agent::Event stop;
    std::thread thread;
};

constexpr const char* kNobody = "tcp://127.0.0.1:9";

}  // namespace

TEST_CASE("job: an agent that is noted by a name that is not Slurm's is found once") {
    Rig rig;
    const auto note = rig.note("own-name", rig.endpoint());
    const FakeSlurm slurm("4242 4242 n1", "n1");
    CHECK(rig.found() == std::vector<std::string>{rig.endpoint()});
}

TEST_CASE("job: without a note it is found by the ports that follow from the job's name") {
    Rig rig;
    const FakeSlurm slurm("4242 4242 n1", "n1");
    CHECK(rig.found() == std::vector<std::string>{rig.endpoint()});
}

TEST_CASE(
    "job: a note of a node that Slurm does not name counts as long as somebody answers there") {
    Rig rig;
    const auto note = rig.note("n1", rig.endpoint()), dead = rig.note("n9", kNobody);
    SUBCASE("another node's") {
        const FakeSlurm slurm("4242 4242 n1", "n1");
        CHECK(rig.found() == std::vector<std::string>{rig.endpoint()});
    }
    SUBCASE("a node of the job") {
        const FakeSlurm slurm("4242 4242 n[1,9]", "n1 n9");
        CHECK(rig.found() == std::vector<std::string>{rig.endpoint(), kNobody});
    }
    SUBCASE("Slurm names none") {
        const FakeSlurm slurm("", "");
        CHECK(rig.found() == std::vector<std::string>{rig.endpoint(), kNobody});
    }
}

TEST_CASE("job: without a key a task of an array is found in this host's directory of its number") {
    Rig rig;
    std::filesystem::remove(rig.folder.path() + "/.ringside/key");
    const std::string directory = rig.folder.path() + "/none/4250.n1";
    std::filesystem::create_directories(directory);
    std::ofstream(directory + "/agent.sock") << "";
    const FakeSlurm slurm("4242_7 4250 n1", "n1");
    const auto agents = find_job_agents("4242_7", "");
    REQUIRE(agents);
    CHECK(agents->endpoints == std::vector<std::string>{"ipc://" + directory + "/agent.sock"});
}

TEST_CASE("job: of endpoints that the user names it is the key that the job gives") {
    Rig rig;
    const auto agents = find_job_agents("4242", "", {kNobody});
    REQUIRE(agents);
    CHECK(agents->endpoints == std::vector<std::string>{kNobody});
    CHECK(agents->key->secret_half == rig.key.secret_half);
}

TEST_CASE("job: a default key that can't be read is none; one that was named is an error") {
    Rig rig;
    const std::string path = rig.folder.path() + "/.ringside/key";
    REQUIRE(::chmod(path.c_str(), 0644) == 0);
    CHECK(find_job_agents("4242", "").error().code == schema::ErrorCode::kNoAgent);
    CHECK(find_job_agents("4242", path).error().code == schema::ErrorCode::kRefused);
    CHECK(find_job_agents("4242", "", {"ipc:///tmp/a.sock"}));
}

TEST_CASE(
    "job: one agent tells of those that are noted where it is; it is itself where it was asked") {
    Rig rig("4242");
    const auto dead = rig.note("n9", kNobody), elsewhere = rig.note("own-name", kNobody);
    const FakeSlurm slurm("", "");
    const std::string with_port = rig.endpoint().substr(std::string("tcp://").size());
    for (const std::string& named : {std::string("127.0.0.1"), with_port}) {
        const auto agents = find_job_agents("4242", "", {}, named);
        REQUIRE_MESSAGE(agents, (agents ? "" : agents.error().message));
        CHECK(agents->endpoints == std::vector<std::string>{rig.endpoint(), kNobody});
        CHECK(agents->key->secret_half == rig.key.secret_half);
    }
}

TEST_CASE(
    "job: one agent tells of the nodes that Slurm names, and of itself though nobody has noted "
    "it") {
    Rig rig("4242");
    agent::forget_agent("4242", "own-name");
    const FakeSlurm slurm("4242 4242 n1", "n1");
    const std::string here = "ipc://" + rig.folder.path() + "/agent.sock";
    // n1 is the same one by Slurm's name.
    CHECK(find_job_agents("4242", "", {}, here)->endpoints == std::vector<std::string>{here});
}

TEST_CASE("job: who is asked for its peers and is none of the job's, or nobody, is an error") {
    using schema::ErrorCode;
    const auto code = [](const std::string& job, const std::string& named) {
        return find_job_agents(job, "", {}, named).error().code;
    };
    const FakeSlurm slurm("", "");
    SUBCASE("of no job") {
        Rig rig;
        CHECK(code("4242", rig.endpoint()) == ErrorCode::kNothingMatched);
        CHECK(code("4242", kNobody) == ErrorCode::kNoAgent);
        CHECK(code("4242", "ipc:relative") == ErrorCode::kUsage);
        CHECK(code("../4242", rig.endpoint()) == ErrorCode::kUsage);
        CHECK(code("5", rig.endpoint()) == ErrorCode::kRefused);
        std::filesystem::remove(rig.folder.path() + "/.ringside/key");
        CHECK(code("4242", rig.endpoint()) == ErrorCode::kRefused);
    }
    SUBCASE("of another job") {
        Rig rig("77");
        CHECK(code("4242", rig.endpoint()) == ErrorCode::kNothingMatched);
    }
}
