// Control messages: whatever bytes a client or another agent sends are refused or taken apart within their bounds, and what was taken is
// handled as the server and a leader do. libFuzzer's way in; with RINGSIDE_FUZZ_SEEDS it writes there what to start from.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/clock/model.hpp"
#include "agent/control/endpoint.hpp"
#include "agent/control/known_agents.hpp"
#include "agent/control/messages.hpp"
#include "agent/control/node_service.hpp"
#include "tests/unit/agent_control/fake_engine.hpp"

namespace ringside::agent {

/// Homes and Slurm are asked by others.
schema::Result<fbs::PeersReplyT> tell_known(const std::string&, const NotedAgent&) {
    return schema::Error{schema::ErrorCode::kNothingMatched, "nobody"};
}

}  // namespace ringside::agent

namespace {

using namespace ringside;
using namespace ringside::agent;

/// In memory, and never two at once.
EngineOptions options() {
    EngineOptions made;
    made.root = std::getenv("TMPDIR") == nullptr ? "/tmp" : std::getenv("TMPDIR");
    made.job = "job";
    made.node = "node";
    made.output_root = made.root;
    return made;
}

void require(bool holds) {
    if (!holds) std::abort();
}

struct Node {
    Node() : engine(options()), service(engine, {"host", "version", "ipc:///x", 0}) {
        ProcessReport process;
        process.pid = 42;
        process.command_line = {"python3", "job.py"};
        engine.processes_to_give.push_back(process);
        engine.halves_to_give.resize(3);
        engine.iterations_to_tell.resize(1);
    }
    agent::test::FakeEngine engine;
    NodeService service;
};

/// Instants of up to a minute ahead are waited for; nobody has that much time here.
std::int64_t not_ahead(std::int64_t node_ns, const NodeService& service) {
    const std::int64_t now = service.engine().node_now().value;
    return node_ns > now && node_ns <= now + 61 * schema::kNsPerSecond ? now : node_ns;
}

void serve(NodeService& service, fbs::MessageT& message) {
    if (const auto* prepare = content_as<fbs::PrepareRequestT>(message)) {
        if (auto reply = service.prepare(*prepare); reply) require(!pack(1, *reply).empty());
    }
    if (auto* begin = content_as<fbs::BeginRequestT>(message)) {
        begin->start_node_ns = not_ahead(begin->start_node_ns, service);
        static_cast<void>(service.begin(*begin));
    }
    if (auto* stop = content_as<fbs::StopRequestT>(message)) {
        stop->stop_node_ns = not_ahead(stop->stop_node_ns, service);
        static_cast<void>(service.stop(*stop));
    }
    if (const auto* halves = content_as<fbs::HalvesRequestT>(message))
        static_cast<void>(service.halves(1, *halves));
    if (const auto* arm = content_as<fbs::ArmRequestT>(message))
        static_cast<void>(service.arm(*arm));
    if (message.content.type == fbs::Content::DisarmRequest) static_cast<void>(service.disarm());
    if (const auto* iterations = content_as<fbs::IterationsRequestT>(message))
        static_cast<void>(service.iterations(*iterations));
    static_cast<void>(processes_reply(service.engine()));
    static_cast<void>(status_reply(service.engine(), service.identity()));
}

/// Pings that a relay tells of, by whatever clock.
void measure(const fbs::RelayClockT& clock) {
    std::vector<PingSample> samples;
    for (const fbs::PingTimes& times : clock.samples)
        samples.push_back({{times.sent_ns()}, {times.node_ns()}, {times.received_ns()}});
    const ClockCorrection relay{{7}, 1'000'000'000, 50'000, 30'000};
    const auto taken = taken_by_relay(samples, relay);
    require(taken.size() <= samples.size());
    static_cast<void>(measure_clock(taken, samples, taken, {{0}, {1'000'000'000}}));
}

/// What a leader makes of another agent's answers.
void lead(fbs::MessageT& message) {
    if (const auto* stopped = content_as<fbs::StopReplyT>(message)) {
        static_cast<void>(calibration_of(*stopped));
        for (const auto& process : stopped->processes) static_cast<void>(outcome_of(*process));
    }
    if (const auto* page = content_as<fbs::HalvesReplyT>(message)) {
        for (const auto& half : page->halves) static_cast<void>(half_of(*half));
    }
    if (const auto* error = content_as<fbs::ErrorReplyT>(message))
        static_cast<void>(error_of(*error));
    if (const auto* clocks = content_as<fbs::RelayClocksReplyT>(message)) {
        for (const auto& clock : clocks->nodes) measure(*clock);
    }
}

/// What a relay makes of a leader's envelope and a leader of a relay's: each message in it is a stranger's again.
void open_envelope(fbs::MessageT& message) {
    const auto open = [](const std::vector<std::unique_ptr<fbs::RelayedT>>& messages) {
        for (const auto& relayed : messages) {
            const auto kind = kind_of(relayed->body);
            auto inner = unpack_message(relayed->body);
            require(static_cast<bool>(kind) == static_cast<bool>(inner));
            if (inner) lead(*inner);
        }
    };
    if (const auto* request = content_as<fbs::RelayRequestT>(message)) open(request->messages);
    if (const auto* reply = content_as<fbs::RelayReplyT>(message)) open(reply->messages);
    if (const auto* wanted = content_as<fbs::RelayOpenRequestT>(message)) {
        for (const std::string& endpoint : wanted->endpoints)
            static_cast<void>(check_endpoint(endpoint));
    }
}

/// One node of a trace, told `times` times, with room for so many tables.
MessageBytes told_again(std::size_t times, std::size_t name_bytes) {
    flatbuffers::FlatBufferBuilder builder;
    builder.CreateString(std::string((8 + name_bytes) * (times == 2 ? 2 : 1) + 8 * times, ' '));
    const auto name = builder.CreateString(std::string(name_bytes, 'x'));
    const auto node = fbs::CreateTraceNode(builder, name);
    const auto nodes = builder.CreateVector(std::vector(times, node));
    const auto reply = fbs::CreateTraceReply(builder, 1, 0, nodes).Union();
    fbs::FinishMessageBuffer(builder,
                             fbs::CreateMessage(builder, 1, 21, fbs::Content::TraceReply, reply));
    return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

/// Nothing is told so often that it comes to many times the message's bytes. Sixteen: tables of one byte each have slots of their own when they are packed again; halves
/// share their names.
bool stays_small(const fbs::MessageT& message, std::size_t told, std::size_t packed) {
    const std::size_t share = message.content.type == fbs::Content::HalvesReply ? 16 : 1;
    return packed <= 16 * share * told + 4096;
}

/// One of each kind, with something in each list.
std::vector<MessageBytes> seeds() {
    std::vector<MessageBytes> all;
    fbs::TraceRequestT trace;
    trace.peers = {"ipc:///a", "tcp://b:1"};
    trace.pids = {1, 2};
    trace.executables = {"python3"};
    trace.name = "name";
    trace.asker = "somebody";
    all.push_back(pack(1, std::move(trace)));
    fbs::PrepareRequestT prepare;
    prepare.capture_id = 7;
    prepare.pids = {1, 2};
    prepare.ranks = {0};
    prepare.executables = {"python3"};
    prepare.name = "name";
    prepare.iterations = 3;
    all.push_back(pack(2, std::move(prepare)));
    fbs::BeginRequestT begin;
    begin.capture_id = 7;
    all.push_back(pack(3, begin));
    fbs::StopRequestT stop;
    stop.capture_id = 7;
    all.push_back(pack(4, stop));
    fbs::HalvesRequestT halves;
    halves.capture_id = 7;
    all.push_back(pack(5, halves));
    fbs::ArmRequestT arm;
    arm.keep_ms = 1000;
    arm.pids = {4};
    all.push_back(pack(6, std::move(arm)));
    all.push_back(pack(7, fbs::DisarmRequestT{}));
    fbs::IterationsRequestT iterations;
    iterations.capture_id = 7;
    all.push_back(pack(8, iterations));
    all.push_back(pack(9, fbs::PingRequestT{}));
    all.push_back(pack(10, fbs::PeersRequestT{}));
    fbs::FetchRequestT fetch;
    fetch.path = "/var/tmp/x/node.rsd";
    all.push_back(pack(11, std::move(fetch)));
    Node node;
    prepare = {};
    prepare.capture_id = 7;
    static_cast<void>(node.service.prepare(prepare));
    static_cast<void>(node.service.begin(begin));
    if (auto stopped = node.service.stop(stop)) all.push_back(pack(12, std::move(*stopped)));
    if (auto page = node.service.halves(13, halves)) all.push_back(*page);
    all.push_back(pack(14, processes_reply(node.engine)));
    all.push_back(pack(16, status_reply(node.engine, node.service.identity())));
    all.push_back(pack(17, error_reply({schema::ErrorCode::kRefused, "because"})));
    fbs::RelayOpenRequestT open;
    open.endpoints = {"ipc:///a", "tcp://b:1"};
    all.push_back(pack(18, std::move(open)));
    fbs::RelayRequestT envelope;
    envelope.messages.push_back(std::make_unique<fbs::RelayedT>());
    envelope.messages[0]->nodes = {0, 1};
    envelope.messages[0]->body = all.front();
    all.push_back(pack(19, std::move(envelope)));
    fbs::RelayReplyT passed;
    passed.messages.push_back(std::make_unique<fbs::RelayedT>());
    passed.messages[0]->nodes = {0};
    passed.messages[0]->body = all.back();
    passed.faults.push_back(std::make_unique<fbs::RelayFaultT>());
    passed.faults[0]->message = "because";
    all.push_back(pack(0, std::move(passed)));
    fbs::RelayClocksReplyT clocks;
    clocks.nodes.push_back(std::make_unique<fbs::RelayClockT>());
    clocks.nodes[0]->samples = {{1, 2, 3}, {4, 5, 6}};
    all.push_back(pack(20, std::move(clocks)));
    all.push_back(told_again(2, 10));
    all.push_back(told_again(400, 3000));
    return all;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    const char* folder = std::getenv("RINGSIDE_FUZZ_SEEDS");
    if (folder == nullptr) return 0;
    int number = 0;
    for (const MessageBytes& seed : seeds()) {
        std::ofstream file(std::string(folder) + "/seed" + std::to_string(number++));
        file.write(reinterpret_cast<const char*>(seed.data()),
                   static_cast<std::streamsize>(seed.size()));
    }
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static Node node;
    auto message = unpack_message({data, size});
    if (!message) return 0;
    // What one side has taken, it can pass on, and another one takes it.
    const MessageBytes again = pack_message(message->id, message->content);
    require(stays_small(*message, size, again.size()));
    require(again.size() > kMostReplyBytes || static_cast<bool>(unpack_message(again)));
    serve(node.service, *message);
    lead(*message);
    open_envelope(*message);
    return 0;
}
