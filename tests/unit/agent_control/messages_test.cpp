// Every message goes there and back; whatever else arrives is refused and never followed.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "agent/control/convert.hpp"
#include "agent/control/endpoint.hpp"
#include "agent/control/messages.hpp"
#include "halves.hpp"
#include "tests/unit/misaligned.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
namespace fbs = ringside::fbs;
using ringside::schema::ErrorCode;

namespace {

template <class Table>
std::unique_ptr<Table> made() {
    return std::make_unique<Table>();
}

fbs::StopReplyT full_stop_reply() {
    fbs::StopReplyT stop;
    stop.node = "a";
    stop.path = "/var/tmp/out/cap/a.rsd";
    stop.records = 12345678901234;
    stop.calibration = made<fbs::CalibrationT>();
    stop.calibration->ticks_per_second = 2.6e9;
    stop.calibration->reference_ns = -5;
    stop.processes.push_back(made<fbs::ProcessResultT>());
    stop.processes[0]->sources.push_back(made<fbs::SourceT>());
    stop.processes[0]->workers = {"worker0", "worker1"};
    stop.processes[0]->fate = fbs::Fate::Killed;
    stop.processes[0]->verdict = fbs::Verdict::Killed;
    stop.processes[0]->iterations = made<fbs::IterationsT>();
    stop.processes[0]->iterations->name = "step";
    return stop;
}

fbs::TraceReplyT full_trace_reply() {
    fbs::TraceReplyT trace;
    trace.job_index = "/x/job.rsj";
    trace.nodes.push_back(made<fbs::TraceNodeT>());
    trace.nodes[0]->clock = std::make_unique<fbs::ClockCorrection>(1, -2, 3.5, 4);
    trace.verdicts.push_back(made<fbs::ProcessVerdictT>());
    trace.verdicts[0]->reason = "static binary";
    trace.order_violations = 3;
    return trace;
}

fbs::ProcessesReplyT full_processes_reply() {
    fbs::ProcessesReplyT processes;
    processes.processes.push_back(made<fbs::ProcessStatusT>());
    processes.processes[0]->process = made<fbs::ProcessT>();
    processes.processes[0]->process->command_line = {"python3", "job.py"};
    processes.processes[0]->process->sources.push_back(made<fbs::SourceT>());
    return processes;
}

/// One of each kind, with something in it.
std::vector<MessageBytes> one_of_each() {
    std::vector<MessageBytes> all;
    const auto add = [&](auto table) { all.push_back(pack(all.size() + 1, std::move(table))); };
    fbs::StatusReplyT status;
    status.node = "node";
    status.capture_id = ~0ull;
    fbs::PrepareRequestT prepare;
    prepare.pids = {1, 2, -3};
    prepare.ranks = {0};
    prepare.executables = {"python3"};
    prepare.limit = 3;
    prepare.name = "cap";
    fbs::TraceRequestT trace;
    trace.peers = {"ipc:///a", "ipc:///b"};
    fbs::HalvesReplyT halves;
    halves.halves.push_back(made<fbs::HalfT>());
    halves.halves[0]->self = "worker0";
    fbs::ProgressT progress;
    progress.text = "capturing";
    fbs::PingReplyT ping;
    ping.node_ns = -1;
    fbs::ErrorReplyT error;
    error.message = "no";
    add(fbs::StatusRequestT{});
    add(std::move(status));
    add(fbs::ProcessesRequestT{});
    add(full_processes_reply());
    add(fbs::PingRequestT{});
    add(std::move(ping));
    add(std::move(prepare));
    add(fbs::PrepareReplyT{});
    add(fbs::BeginRequestT{});
    add(fbs::BeginReplyT{});
    add(fbs::StopRequestT{});
    add(full_stop_reply());
    add(fbs::HalvesRequestT{});
    add(std::move(halves));
    add(std::move(trace));
    add(std::move(progress));
    add(full_trace_reply());
    add(fbs::CancelRequestT{});
    add(fbs::CancelReplyT{});
    add(fbs::ShutdownRequestT{});
    add(fbs::ShutdownReplyT{});
    add(std::move(error));
    fbs::ArmRequestT arm;
    arm.pids = {7};
    arm.max_bytes = 1 << 20;
    fbs::ArmReplyT armed;
    armed.window = made<fbs::WindowStatusT>();
    armed.window->aged_records = 12345678901234;
    fbs::DisarmReplyT disarmed;
    disarmed.left_pieces = 3;
    add(std::move(arm));
    add(std::move(armed));
    add(fbs::DisarmRequestT{});
    add(std::move(disarmed));
    fbs::IterationsReplyT iterations;
    iterations.slowest_ns = 12345678901234;
    add(fbs::IterationsRequestT{});
    add(iterations);
    fbs::PeersRequestT peers;
    peers.job = "4242_7";
    fbs::PeersReplyT known;
    known.noted.push_back(made<fbs::NotedAgentT>());
    known.noted[0]->endpoint = "tcp://10.0.0.1:20001";
    known.nodes.push_back(made<fbs::SlurmNodeT>());
    known.nodes[0]->address = "10.0.0.2";
    add(std::move(peers));
    add(std::move(known));
    fbs::FetchReplyT part;
    part.data = {1, 2, 3};
    add(fbs::FetchRequestT{});
    add(std::move(part));
    fbs::RelayOpenRequestT open;
    open.endpoints = {"tcp://10.0.0.1:20001", "tcp://10.0.0.2:20001"};
    fbs::RelayOpenReplyT opened;
    opened.faults.push_back(made<fbs::RelayFaultT>());
    opened.faults[0]->message = "not there";
    fbs::RelayRequestT envelope;
    envelope.messages.push_back(made<fbs::RelayedT>());
    envelope.messages[0]->nodes = {0, 1};
    envelope.messages[0]->body = pack(1, fbs::PingRequestT{});
    fbs::RelayReplyT passed;
    passed.messages.push_back(made<fbs::RelayedT>());
    passed.messages[0]->body = {1, 2, 3};
    fbs::RelayClocksReplyT clocks;
    clocks.nodes.push_back(made<fbs::RelayClockT>());
    clocks.nodes[0]->samples = {{1, -2, 3}};
    add(std::move(open));
    add(std::move(opened));
    add(std::move(envelope));
    add(std::move(passed));
    add(fbs::RelayClocksRequestT{});
    add(std::move(clocks));
    return all;
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("messages: every kind comes back as it went") {
        const auto all = one_of_each();
        CHECK(all.size() == static_cast<std::size_t>(fbs::Content::MAX));
        for (std::size_t i = 0; i < all.size(); ++i) {
            auto message = unpack_message(all[i]);
            REQUIRE(message);
            CHECK(message->id == i + 1);
            CHECK(message->content.type == static_cast<fbs::Content>(i + 1));
            CHECK(pack_message(message->id, std::move(message->content)) == all[i]);
        }
    }

    TEST_CASE("messages: a cut one is refused at every length") {
        for (const MessageBytes& whole : one_of_each()) {
            for (std::size_t size = 0; size < whole.size(); ++size) {
                const MessageBytes cut(whole.begin(),
                                       whole.begin() + static_cast<std::ptrdiff_t>(size));
                if (auto message = unpack_message(cut))
                    (void)pack_message(message->id, std::move(message->content));
            }
        }
        CHECK_FALSE(unpack_message({}));
    }

    TEST_CASE("messages: flipped bits are refused or read, never followed out of the frame") {
        std::mt19937_64 random(14);
        const auto all = one_of_each();
        std::size_t refused = 0;
        for (int i = 0; i < 20'000; ++i) {
            MessageBytes bytes = all[random() % all.size()];
            for (std::uint64_t flips = 1 + random() % 4; flips > 0; --flips)
                bytes[random() % bytes.size()] ^= static_cast<std::uint8_t>(1u << random() % 8);
            auto message = unpack_message(bytes);
            if (!message) {
                ++refused;
                continue;
            }
            CHECK(message->content.value != nullptr);
            (void)pack_message(message->id, std::move(message->content));
        }
        CHECK(refused > 1000);
    }

    TEST_CASE("messages: noise is refused") {
        std::mt19937_64 random(15);
        for (int i = 0; i < 2000; ++i) {
            MessageBytes noise(random() % 300);
            for (auto& byte : noise) byte = static_cast<std::uint8_t>(random());
            CHECK_FALSE(unpack_message(noise));
        }
    }

    TEST_CASE("messages: a frame that is not aligned is read all the same") {
        const MessageBytes whole = pack(5, full_stop_reply());
        MessageBytes shifted(1);
        shifted.insert(shifted.end(), whole.begin(), whole.end());
        auto message = unpack_message(std::span(shifted).subspan(1));
        REQUIRE(message);
        CHECK(content_as<fbs::StopReplyT>(*message)->processes[0]->workers.size() == 2);
        CHECK(content_as<fbs::PingReplyT>(*message) == nullptr);
    }

    TEST_CASE("messages: 8-byte numbers that lie at a multiple of 4 alone are refused") {
        fbs::ProcessesReplyT reply;
        reply.processes.push_back(std::make_unique<fbs::ProcessStatusT>());
        reply.processes[0]->process = std::make_unique<fbs::ProcessT>();
        reply.processes[0]->process->losses_before = {1, 2, 3};
        const MessageBytes good = pack(1, std::move(reply));
        CHECK(unpack_message(good));
        const auto* losses = fbs::GetMessage(good.data())
                                 ->content_as_ProcessesReply()
                                 ->processes()
                                 ->Get(0)
                                 ->process()
                                 ->losses_before();
        CHECK_FALSE(unpack_message(ringside::tests::with_moved(good, losses)));
    }

    TEST_CASE("messages: one without a version, or of a kind that is not known, is refused") {
        for (const std::uint32_t version : {0u, 1u}) {
            flatbuffers::FlatBufferBuilder builder;
            const auto ping = fbs::CreatePingRequest(builder).Union();
            const auto kind =
                version == 0 ? fbs::Content::PingRequest : static_cast<fbs::Content>(99);
            fbs::FinishMessageBuffer(builder, fbs::CreateMessage(builder, version, 1, kind, ping));
            CHECK_FALSE(unpack_message({builder.GetBufferPointer(), builder.GetSize()}));
        }
    }

    TEST_CASE("messages: errors keep their code and words") {
        for (const ErrorCode code :
             {ErrorCode::kUsage, ErrorCode::kNothingMatched, ErrorCode::kNoAgent,
              ErrorCode::kRefused, ErrorCode::kInput, ErrorCode::kInternal}) {
            const auto back = error_of(error_reply({code, "words"}));
            CHECK(back.code == code);
            CHECK(back.message == "words");
        }
    }

    TEST_CASE("messages: halves travel in pages that share their names") {
        std::vector<Half> halves;
        for (std::uint64_t i = 0; i < 2500; ++i)
            halves.push_back(client("worker0", "worker1", i, 5, i % 2 == 0 ? 0 : 9));
        std::vector<Half> back;
        while (back.size() < halves.size()) {
            const MessageBytes page = pack_halves(3, halves, back.size(), 1000);
            CHECK(page.size() < 200'000);
            auto message = unpack_message(page);
            REQUIRE(message);
            auto* reply = content_as<fbs::HalvesReplyT>(*message);
            REQUIRE(reply != nullptr);
            CHECK(reply->total == 2500);
            CHECK(reply->first == back.size());
            for (const auto& half : reply->halves) back.push_back(half_of(*half));
        }
        REQUIRE(back.size() == halves.size());
        for (std::size_t i = 0; i < back.size(); ++i) {
            CHECK(back[i].id == halves[i].id);
            CHECK(back[i].position == halves[i].position);
            CHECK(back[i].ended == halves[i].ended);
            CHECK(back[i].peer == "worker1");
        }
        auto beyond = unpack_message(pack_halves(3, halves, 9999, 10));
        REQUIRE(beyond);
        CHECK(content_as<fbs::HalvesReplyT>(*beyond)->halves.empty());
    }

    TEST_CASE("endpoint: the default lies in the job directory, or in a short one") {
        CHECK(default_endpoint("/dev/shm/r", "j") == "ipc:///dev/shm/r/j/agent.sock");
        const std::string longer = default_endpoint("/dev/shm/" + std::string(90, 'r'), "j");
        CHECK(longer.starts_with("ipc:///tmp/ringside-"));
        CHECK(longer.size() - 6 <= kMostSocketPathBytes);
        CHECK(longer != default_endpoint("/dev/shm/" + std::string(90, 'r'), "k"));
        CHECK(socket_path(longer));
    }

    TEST_CASE("endpoint: ipc with an absolute path, tcp with a host and a port, nothing else") {
        CHECK(*socket_path("ipc:///a/b.sock") == "/a/b.sock");
        CHECK(check_endpoint("ipc:///a/b.sock"));
        for (const char* bad :
             {"", "ipc://", "ipc:///", "ipc://relative", "ipc://@abstract", "udp://x", "/a/b"}) {
            const auto path = socket_path(bad);
            REQUIRE_FALSE(path);
            CHECK(path.error().code == ErrorCode::kUsage);
            CHECK_FALSE(check_endpoint(bad));
        }
        CHECK(socket_path("ipc:///" + std::string(107, 'x')).error().code == ErrorCode::kUsage);
        for (const char* good :
             {"tcp://127.0.0.1:1", "tcp://node-7.cluster:65535", "tcp://[::1]:80"})
            CHECK(check_endpoint(good));
        CHECK(tcp_address("tcp://[fe80::1]:80")->host == "fe80::1");
        CHECK(tcp_address("tcp://a:80")->port == "80");
        for (const char* bad :
             {"tcp://", "tcp://a", "tcp://:80", "tcp://a:", "tcp://a:0", "tcp://a:65536",
              "tcp://a:8x", "tcp://*:80", "tcp://a b:80", "tcp://::1:80"}) {
            CAPTURE(bad);
            CHECK(check_endpoint(bad).error().code == ErrorCode::kUsage);
        }
    }

    TEST_CASE("names: of letters, digits, '.', '_' and '-' alone") {
        CHECK(check_name("--name", "cap-1_a.b"));
        for (const char* bad : {"", ".", "..", "a/b", "../x", "/x", "a b", "a\nb", "\xc3\xa9"})
            CHECK(check_name("--name", bad).error().code == ErrorCode::kUsage);
        CHECK_FALSE(check_name("--name", std::string(129, 'a')));
    }
}
