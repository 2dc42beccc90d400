// A server on its socket: what it answers, and what it survives.
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <random>

#include "agent/control/convert.hpp"
#include "agent/control/unsent_letters.hpp"
#include "agents.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
namespace fbs = ringside::fbs;
using ringside::schema::ErrorCode;

namespace {

std::unique_ptr<Client> client_of(const Agent& agent) {
    auto client = Client::connect(agent.endpoint);
    REQUIRE(client);
    return std::move(*client);
}

bool answers(const Agent& agent) {
    return static_cast<bool>(client_of(agent)->ask<fbs::StatusReplyT>(fbs::StatusRequestT{}));
}

/// A large good request, to be damaged.
fbs::PrepareRequestT full_of_pids() {
    fbs::PrepareRequestT request;
    request.pids.assign(200, 4711);
    request.name = "name";
    return request;
}

int raw_connection(const std::string& endpoint) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, endpoint.c_str() + 6, sizeof address.sun_path - 1);
    REQUIRE(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    return fd;
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("server: status, processes and ping") {
        const Folder folder;
        Agent agent(folder, "a", 5'000'000'000);
        ProcessReport process;
        process.pid = 42;
        process.host_pid = 42;
        process.command_line = {"python3", "job.py"};
        process.sources.push_back({ringside::schema::SourceId::kTorch,
                                   ringside::schema::SourceLevel::kDegraded, "no Python part"});
        agent.engine.processes_to_give.push_back(process);
        agent.serve();
        const auto client = client_of(agent);
        const auto status = client->ask<fbs::StatusReplyT>(fbs::StatusRequestT{});
        REQUIRE(status);
        CHECK(status->node == "a");
        CHECK(status->version == "test");
        CHECK(status->endpoint == agent.endpoint);
        CHECK(status->processes == 1);
        CHECK_FALSE(status->capturing);
        const auto processes = client->ask<fbs::ProcessesReplyT>(fbs::ProcessesRequestT{});
        REQUIRE(processes);
        REQUIRE(processes->processes.size() == 1);
        CHECK(processes->processes[0]->process->host_pid == 42);
        CHECK(processes->processes[0]->process->sources[0]->reason == "no Python part");
        const std::int64_t before = agent.engine.node_now().value;
        const auto ping = client->ask<fbs::PingReplyT>(fbs::PingRequestT{});
        REQUIRE(ping);
        CHECK(ping->node_ns >= before);
        CHECK(ping->node_ns <= agent.engine.node_now().value);
    }

    TEST_CASE("server: the socket's file is its owner's alone, and gone afterwards") {
        const Folder folder;
        std::string path;
        {
            Agent agent(folder, "a");
            path = agent.endpoint.substr(6);
            struct stat status {};
            REQUIRE(::stat(path.c_str(), &status) == 0);
            CHECK((status.st_mode & 0777) == 0600);
        }
        CHECK(::access(path.c_str(), F_OK) != 0);
    }

    TEST_CASE("server: a shutdown request ends it, after the reply") {
        const Folder folder;
        Agent agent(folder, "a");
        agent.serve();
        CHECK(client_of(agent)->ask<fbs::ShutdownReplyT>(fbs::ShutdownRequestT{}));
        agent.join();
    }

    TEST_CASE("server: a living agent's socket is not taken, a dead one's is") {
        const Folder folder;
        Agent first(folder, "a");
        first.serve();
        FakeEngine engine(engine_options(folder, "b"));
        const auto second = Server::bind(engine, {first.endpoint, "test"});
        REQUIRE_FALSE(second);
        CHECK(second.error().code == ErrorCode::kRefused);
        CHECK(answers(first));

        const std::string stale = folder.path() + "/stale.sock";
        const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, stale.c_str(), sizeof address.sun_path - 1);
        REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
        ::close(fd);
        const auto client = Client::connect("ipc://" + stale);
        REQUIRE_FALSE(client);
        CHECK(client.error().code == ErrorCode::kNoAgent);
        CHECK(Server::bind(engine, {"ipc://" + stale, "test"}));
    }

    TEST_CASE("server: a file that is no socket stays as it is") {
        const Folder folder;
        const std::string file = folder.path() + "/thesis.tex";
        std::ofstream(file) << "years of work";
        FakeEngine engine(engine_options(folder, "a"));
        const auto bound = Server::bind(engine, {"ipc://" + file, "test"});
        REQUIRE_FALSE(bound);
        CHECK(bound.error().code == ErrorCode::kRefused);
        CHECK(std::filesystem::file_size(file) == 13);
    }

    TEST_CASE("server: a directory that others may write is refused") {
        const Folder folder;
        const std::string open = folder.path() + "/open";
        REQUIRE(::mkdir(open.c_str(), 0700) == 0);
        REQUIRE(::chmod(open.c_str(), 01777) == 0);
        FakeEngine engine(engine_options(folder, "a"));
        const auto bound = Server::bind(engine, {"ipc://" + open + "/agent.sock", "test"});
        REQUIRE_FALSE(bound);
        CHECK(bound.error().code == ErrorCode::kRefused);
    }

    TEST_CASE("client: no agent there: says so and what to do") {
        const Folder folder;
        const auto client = Client::connect("ipc://" + folder.path() + "/nobody.sock");
        REQUIRE_FALSE(client);
        CHECK(client.error().code == ErrorCode::kNoAgent);
        CHECK(client.error().message.find("ringside agent") != std::string::npos);
    }

    TEST_CASE(
        "client: an agent that is stopped is an error after the deadline, a dead one at once") {
        const Folder folder;
        auto agent = std::make_unique<Agent>(folder, "a");  // bound, and nobody serves
        const auto client = client_of(*agent);
        const auto silent =
            client->ask<fbs::StatusReplyT>(fbs::StatusRequestT{}, Milliseconds(100));
        REQUIRE_FALSE(silent);
        CHECK(silent.error().code == ErrorCode::kNoAgent);
        agent.reset();
        const auto started = std::chrono::steady_clock::now();
        const auto dead =
            client->ask<fbs::StatusReplyT>(fbs::StatusRequestT{}, Milliseconds(60'000));
        REQUIRE_FALSE(dead);
        CHECK(dead.error().code == ErrorCode::kNoAgent);
        CHECK(std::chrono::steady_clock::now() - started < std::chrono::seconds(10));
    }

    TEST_CASE("server: garbage, parts and huge frames are survived and counted") {
        const Folder folder;
        Agent agent(folder, "a");
        agent.serve();
        std::mt19937_64 random(19);
        {
            zmq::context_t context(1);
            zmq::socket_t dealer(context, zmq::socket_type::dealer);
            dealer.set(zmq::sockopt::linger, 1000);
            dealer.connect(agent.endpoint);
            const MessageBytes good = pack(1, full_of_pids());
            for (int i = 0; i < 500; ++i) {
                MessageBytes bytes = good;
                bytes[random() % bytes.size()] ^= static_cast<std::uint8_t>(1 + random() % 255);
                bytes.resize(1 + random() % bytes.size());
                dealer.send(zmq::buffer(bytes), zmq::send_flags::none);
            }
            for (int i = 0; i < 2000; ++i)
                dealer.send(zmq::str_buffer("part"), zmq::send_flags::sndmore);
            dealer.send(zmq::str_buffer("end"), zmq::send_flags::none);
            // The reply to a good one shows that all before it has been read.
            const MessageBytes ping = pack(77, fbs::PingRequestT{});
            dealer.send(zmq::buffer(ping), zmq::send_flags::none);
            zmq::message_t reply;
            do {
                REQUIRE(dealer.recv(reply));
            } while (fbs::GetMessage(reply.data())->id() != 77);
        }
        {
            zmq::context_t context(1);
            zmq::socket_t dealer(context, zmq::socket_type::dealer);
            dealer.set(zmq::sockopt::linger, 1000);
            dealer.connect(agent.endpoint);
            const MessageBytes huge(std::size_t{8} << 20, 'x');
            dealer.send(zmq::buffer(huge), zmq::send_flags::none);
        }
        const int raw = raw_connection(agent.endpoint);
        std::vector<char> noise(4096);
        for (char& c : noise) c = static_cast<char>(random());
        (void)!::send(raw, noise.data(), noise.size(), MSG_NOSIGNAL);
        CHECK(answers(agent));
        ::close(raw);
        agent.stop();
        CHECK(agent.server->counts().damaged > 300);
        // At least: libzmq takes noise without a greeting for ZMTP 1.0, and finds messages in it.
        CHECK(agent.server->counts().parts >= 1);
    }

    TEST_CASE("server: a client that does not read does not hold up the others") {
        const Folder folder;
        Agent agent(folder, "a");
        agent.serve();
        zmq::context_t context(1);
        zmq::socket_t slow(context, zmq::socket_type::dealer);
        slow.set(zmq::sockopt::linger, 0);
        slow.set(zmq::sockopt::rcvhwm, 1);
        slow.connect(agent.endpoint);
        const MessageBytes ping = pack(1, fbs::PingRequestT{});
        for (int i = 0; i < 20'000; ++i)
            (void)slow.send(zmq::buffer(ping), zmq::send_flags::dontwait);
        const auto started = std::chrono::steady_clock::now();
        CHECK(answers(agent));
        CHECK(std::chrono::steady_clock::now() - started < std::chrono::seconds(3));
    }

    TEST_CASE("server: what is no request is refused") {
        const Folder folder;
        Agent agent(folder, "a");
        agent.serve();
        const auto reply = client_of(agent)->ask<fbs::PingReplyT>(fbs::TraceReplyT{});
        REQUIRE_FALSE(reply);
        CHECK(reply.error().code == ErrorCode::kUsage);
    }

    TEST_CASE("server: a name that leaves the output root is refused") {
        const Folder folder;
        Agent agent(folder, "a");
        agent.serve();
        const auto client = client_of(agent);
        for (const char* name : {"../x", "/etc", "a/b", ".."}) {
            fbs::PrepareRequestT prepare;
            prepare.capture_id = 1;
            prepare.name = name;
            const auto prepared = client->ask<fbs::PrepareReplyT>(std::move(prepare));
            REQUIRE_FALSE(prepared);
            CHECK(prepared.error().code == ErrorCode::kUsage);
            fbs::TraceRequestT trace;
            trace.name = name;
            const auto traced = client->trace(std::move(trace), {});
            REQUIRE_FALSE(traced);
            CHECK(traced.error().code == ErrorCode::kUsage);
        }
        CHECK_FALSE(agent.engine.status().capturing);
    }

    TEST_CASE("server: nobody makes it wait for a far instant") {
        const Folder folder;
        Agent agent(folder, "a");
        agent.serve();
        fbs::PrepareRequestT prepare;
        prepare.capture_id = 1;
        REQUIRE(client_of(agent)->ask<fbs::PrepareReplyT>(std::move(prepare)));
        for (const std::int64_t instant : {INT64_MAX, INT64_MIN, std::int64_t{0}}) {
            fbs::BeginRequestT begin;
            begin.capture_id = 1;
            begin.start_node_ns = instant;
            const auto begun = client_of(agent)->ask<fbs::BeginReplyT>(begin);
            REQUIRE_FALSE(begun);
            CHECK(begun.error().code == ErrorCode::kUsage);
            fbs::StopRequestT stop;
            stop.capture_id = 1;
            stop.stop_node_ns = instant;
            const auto reply = client_of(agent)->ask<fbs::StopReplyT>(stop);
            REQUIRE_FALSE(reply);
            CHECK(reply.error().code == ErrorCode::kUsage);
        }
        CHECK(agent.engine.status().capturing);
    }

    TEST_CASE("server: nobody makes it wait long for a process that never attaches") {
        fbs::PrepareRequestT prepare;
        prepare.attach_timeout_ms = UINT32_MAX;
        CHECK(capture_request(prepare).attach_timeout.value == 10'000'000'000);
        fbs::ArmRequestT arm;
        arm.attach_timeout_ms = UINT32_MAX;
        CHECK(arm_request(arm).attach_timeout.value == 10'000'000'000);
        arm.attach_timeout_ms = 7;
        CHECK(arm_request(arm).attach_timeout.value == 7'000'000);
    }

    TEST_CASE("server: a client that reads none of its long answers loses them, not the memory") {
        const Folder folder;
        Agent agent(folder, "a");
        ProcessReport process;
        process.command_line = {std::string(500, 'x')};
        agent.engine.processes_to_give.assign(2000, process);  // 1 MB an answer
        agent.serve();
        zmq::context_t context(1);
        std::vector<zmq::socket_t> deaf;
        for (int each = 0; each < 4; ++each) {
            deaf.emplace_back(context, zmq::socket_type::dealer);
            deaf.back().set(zmq::sockopt::linger, 0);
            deaf.back().set(zmq::sockopt::rcvhwm, 1);
            deaf.back().connect(agent.endpoint);
            for (std::uint64_t id = 1; id <= 12; ++id)
                deaf.back().send(zmq::buffer(pack(id, fbs::ProcessesRequestT{})),
                                 zmq::send_flags::none);
        }
        // Served in turn: once this one is, so were those before it.
        const auto client = client_of(agent);
        for (int i = 0; i < 20; ++i)
            CHECK(client->ask<fbs::ProcessesReplyT>(fbs::ProcessesRequestT{}));
        agent.stop();
        CHECK(agent.server->counts().unsent >= 8);
    }

    TEST_CASE("unsent letters: so much of each, less of each where all have much") {
        UnsentLetters letters;
        std::vector<std::shared_ptr<void>> held;
        const auto hold = [&](const std::string& who, std::size_t bytes) {
            held.push_back(letters.hold(who, bytes));
            return held.back() != nullptr;
        };
        CHECK(hold("a", kMostUnsent + 1));  // one that is long may go
        CHECK_FALSE(hold("a", 1));
        CHECK(hold("b", 1));
        held.clear();
        CHECK(hold("a", 1));
        for (std::size_t each = 0; each <= kMostUnsentOfAll / kMostUnsent; ++each)
            CHECK(hold(std::to_string(each), kMostUnsent));
        CHECK_FALSE(hold("1", 1));
        CHECK(hold("c", kUnsentInACrowd + 1));
        CHECK_FALSE(hold("c", 1));
        held.clear();
        CHECK(hold("c", 1));
    }

    /// Asks for a capture in the way of a leader.
    void prepare(const Agent& agent, std::uint64_t id, const char* name, bool granted) {
        fbs::PrepareRequestT request;
        request.capture_id = id;
        request.name = name;
        CHECK(static_cast<bool>(client_of(agent)->ask<fbs::PrepareReplyT>(std::move(request))) ==
              granted);
    }

    TEST_CASE(
        "server: a capture whose leader has died ends of itself, whoever asks in vain meanwhile") {
        const Folder folder;
        Agent agent(folder, "a", 0, 0, Milliseconds(150));
        agent.serve();
        prepare(agent, 9, "left", true);
        prepare(agent, 10, "in-vain", false);
        CHECK(agent.engine.status().capturing);
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (agent.engine.status().capturing && std::chrono::steady_clock::now() < deadline)
            CHECK(answers(agent));
        CHECK_FALSE(agent.engine.status().capturing);
        CHECK(std::filesystem::exists(agent.engine.options().output_root + "/left/a.rsd"));
    }
}
