// The agents of the bench: whole ones, each with its engine, its server and a job; and light ones, which answer without having anything.
#include "tests/bench/agents/serving.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "agent/capture/engine.hpp"
#include "agent/control/outbox.hpp"
#include "agent/control/server.hpp"
#include "tests/bench/agents/job.hpp"

namespace ringside::bench {
namespace {

constexpr int kOpenedAtOnce = 32;
constexpr int kSocketsEach = 8;  ///< a relay has some of its own
constexpr int kLightHalves = 20;
constexpr auto kBetweenWrites = std::chrono::milliseconds(20);

std::size_t entries(const char* directory) {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
        (void)entry;
        ++count;
    }
    return count;
}

struct Node {
    std::unique_ptr<Engine> engine;
    std::unique_ptr<Server> server;
    std::unique_ptr<Job> job;
    std::thread thread;
};

EngineOptions engine_options(const Place& place, int node) {
    EngineOptions options;
    options.root = place.root;
    options.job = "j" + std::to_string(node);
    options.node = node_name(node);
    options.output_root = place.output;
    return options;
}

void open_node(const Place& place, int number, zmq::context_t& context, Node& node) {
    auto engine = Engine::open(engine_options(place, number));
    if (!engine) fail(engine.error());
    node.engine = std::move(*engine);
    ServerSetup setup{.endpoint = place.endpoint(number), .version = "bench"};
    if (place.tcp)
        setup.key = place.key();
    else
        setup.context = &context;
    auto server = Server::bind(*node.engine, setup);
    if (!server) fail(server.error());
    node.server = std::move(*server);
}

/// Attaches each job, and writes what they do while they are recorded.
void produce(std::vector<Node>& nodes, const std::atomic<bool>& ending) {
    std::uint64_t span = 0;
    auto next_write = std::chrono::steady_clock::now();
    while (!ending) {
        for (Node& node : nodes) node.job->attach();
        const bool write = std::chrono::steady_clock::now() >= next_write;
        for (std::size_t i = 0; write && i < nodes.size(); ++i) {
            Job& callee = *nodes[(i + 1) % nodes.size()].job;
            if (nodes[i].job->recording() && callee.recording())
                nodes[i].job->write(callee,
                                    (static_cast<std::uint64_t>(::getpid()) << 32) + ++span);
        }
        if (write) next_write += kBetweenWrites;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

void wait_for_end_of_input() {
    while (std::getchar() != EOF) {
    }
}

}  // namespace

void serve(const Place& place, int first, int count) {
    const std::size_t files = entries("/proc/self/fd"), threads = entries("/proc/self/task");
    zmq::context_t context;
    context.set(zmq::ctxopt::max_sockets, kSocketsEach * count + kSocketsEach);
    std::vector<Node> nodes(static_cast<std::size_t>(count));
    std::atomic<int> next{0};
    std::vector<std::thread> openers;
    for (int i = 0; i < kOpenedAtOnce; ++i) {
        openers.emplace_back([&] {
            for (int n = next++; n < count; n = next++)
                open_node(place, first + n, context, nodes[static_cast<std::size_t>(n)]);
        });
    }
    for (std::thread& opener : openers) opener.join();
    for (int n = 0; n < count; ++n) {
        nodes[static_cast<std::size_t>(n)].job =
            std::make_unique<Job>(place.root + "/j" + std::to_string(first + n), first + n,
                                  first + (n + count - 1) % count, first + (n + 1) % count);
    }
    std::atomic<bool> ending{false};
    std::thread producer([&] { produce(nodes, ending); });
    Event stop;
    for (Node& node : nodes) node.thread = std::thread([&] { node.server->serve(stop.fd()); });
    // Inotify instances are few: most agents find their segment when they look again.
    for (Node& node : nodes) {
        while (node.engine->status().processes == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::printf("{\"files\": %.1f, \"threads\": %.1f}\n",
                static_cast<double>(entries("/proc/self/fd") - files) / count,
                static_cast<double>(entries("/proc/self/task") - threads) / count);
    std::fflush(stdout);
    wait_for_end_of_input();
    stop.raise();
    for (Node& node : nodes) node.thread.join();
    ending = true;
    producer.join();
}

namespace {

/// What a light agent says: one process, which has called the next node's.
class LightAnswers {
public:
    LightAnswers(int first, int count) : first_(first), count_(count) {}

    MessageBytes to(fbs::MessageT& message, const std::string& identity) {
        const int node = number_of(identity);
        switch (message.content.type) {
            case fbs::Content::StatusRequest: {
                fbs::StatusReplyT reply;
                reply.node = node_name(node);
                reply.host = "light";
                reply.counts_iterations = true;
                return pack(message.id, std::move(reply));
            }
            case fbs::Content::ProcessesRequest: {
                fbs::ProcessesReplyT reply;
                reply.node = node_name(node);
                reply.processes.push_back(std::make_unique<fbs::ProcessStatusT>());
                reply.processes.back()->process = std::make_unique<fbs::ProcessT>();
                return pack(message.id, std::move(reply));
            }
            case fbs::Content::PingRequest: {
                fbs::PingReplyT reply;
                reply.node = node_name(node);
                reply.node_ns = schema::read_clock(CLOCK_REALTIME).value;
                return pack(message.id, std::move(reply));
            }
            case fbs::Content::PrepareRequest:
                return pack(message.id, fbs::PrepareReplyT{});
            case fbs::Content::BeginRequest:
                return pack(message.id, fbs::BeginReplyT{});
            case fbs::Content::StopRequest:
                return pack(message.id, stopped(node));
            case fbs::Content::HalvesRequest:
                return pack(message.id, halves(node));
            default:
                return pack(message.id, error_reply({schema::ErrorCode::kUsage, "light"}));
        }
    }

private:
    /// Who connects next is the next node's leader: of one ROUTER with many endpoints nobody knows through which of them somebody came.
    int number_of(const std::string& identity) {
        const auto [found, added] =
            numbers_.try_emplace(identity, static_cast<int>(numbers_.size()) % count_);
        return first_ + found->second;
    }
    fbs::StopReplyT stopped(int node) const {
        fbs::StopReplyT reply;
        reply.node = node_name(node);
        reply.host = "light";
        reply.path = "/light/" + reply.node + ".rsd";
        reply.complete = true;
        reply.calibration = std::make_unique<fbs::CalibrationT>();
        reply.calibration->reference_ns = 0;
        reply.calibration->ticks_per_second = 1e9;
        const std::int64_t now = schema::read_clock(CLOCK_REALTIME).value;
        reply.start_ticks = static_cast<std::uint64_t>(now - schema::kNsPerSecond);
        reply.stop_ticks = static_cast<std::uint64_t>(now);
        auto process = std::make_unique<fbs::ProcessResultT>();
        process->pid = 1;
        process->command = process->executable = "/usr/bin/light";
        process->workers = {worker_name(node)};
        reply.processes.push_back(std::move(process));
        reply.halves_count = kLightHalves;
        return reply;
    }
    fbs::HalvesReplyT halves(int node) const {
        fbs::HalvesReplyT reply;
        reply.total = kLightHalves;
        const int n = node - first_;
        const auto now = static_cast<std::uint64_t>(schema::read_clock(CLOCK_REALTIME).value);
        for (int i = 0; i < kLightHalves; ++i) {
            auto half = std::make_unique<fbs::HalfT>();
            half->server = i % 2 != 0;
            const int caller = half->server ? (n + count_ - 1) % count_ : n;
            half->span = (static_cast<std::uint64_t>(first_ + caller) << 8) + 1 +
                         static_cast<std::uint64_t>(i / 2);
            half->key = half->span;
            half->position = static_cast<std::uint64_t>(i);
            half->begin_ticks = now - 500'000'000;
            half->end_ticks = half->begin_ticks + 1000;
            half->ended = true;
            half->self = worker_name(node);
            half->peer = worker_name(first_ + (half->server ? caller : (n + 1) % count_));
            reply.halves.push_back(std::move(half));
        }
        return reply;
    }

    int first_, count_;
    std::map<std::string, int> numbers_;
};

}  // namespace

void serve_light(const Place& place, int first, int count) {
    zmq::context_t context;
    zmq::socket_t socket(context, zmq::socket_type::router);
    for (int n = 0; n < count; ++n) socket.bind(place.endpoint(first + n));
    std::thread([&] {
        LightAnswers answers(first, count);
        for (;;) {
            zmq::message_t identity, body;
            if (!socket.recv(identity) || !socket.recv(body)) continue;
            auto message =
                unpack_message({static_cast<const std::uint8_t*>(body.data()), body.size()});
            if (!message) fail(message.error());
            const MessageBytes reply = answers.to(*message, identity.to_string());
            socket.send(identity, zmq::send_flags::sndmore);
            socket.send(zmq::buffer(reply), zmq::send_flags::none);
        }
    }).detach();
    std::printf("{\"files\": 1, \"threads\": 0}\n");
    std::fflush(stdout);
    wait_for_end_of_input();
    std::fflush(stdout);
    ::_exit(0);
}

}  // namespace ringside::bench
