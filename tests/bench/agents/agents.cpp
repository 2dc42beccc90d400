// Many agents and their leader. agents.py starts both.
//
//     agents serve ROOT OUTPUT ipc|tcp FIRST COUNT     COUNT whole agents; says "ready" as JSON, ends with its input
//     agents light ROOT OUTPUT ipc FIRST COUNT         COUNT that only answer
//     agents key ROOT OUTPUT tcp 0 0                   writes the key of them all
//     agents lead ROOT OUTPUT ipc|tcp COUNT ROUNDS     asks one, asks all, traces one, traces all; prints how long each took
//     agents whole ROOT OUTPUT ipc COUNT BEHIND        traces all of them through relays with BEHIND nodes each; prints who took part, times nothing
//     agents tree ROOT OUTPUT ipc COUNT RELAYS         traces the first RELAYS of them, then all through these; prints what that took, here and there
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/capture/engine.hpp"
#include "agent/control/client.hpp"
#include "agent/control/lead_desk.hpp"
#include "agent/control/trace_run.hpp"
#include "tests/bench/agents/serving.hpp"

namespace ringside::bench {
namespace {

using namespace ringside::agent;

constexpr int kInARow = 30;  ///< with one agent
constexpr std::size_t kRelayedBeyond = 500;
constexpr int kSingleTraces = 5;
constexpr std::uint32_t kTraceMs = 200;

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / 2];
}

double seconds(clockid_t clock) {
    return static_cast<double>(schema::read_clock(clock).value) / 1e9;
}

double peak_kib() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss);
}

/// What is in memory now: the peak is, at first, that of who has started us.
double resident_kib() {
    std::uint64_t all_pages = 0, resident_pages = 0;
    std::ifstream("/proc/self/statm") >> all_pages >> resident_pages;
    return static_cast<double>(resident_pages) * static_cast<double>(::sysconf(_SC_PAGESIZE)) /
           1024;
}

class Leader {
public:
    explicit Leader(const Place& place) : engine_(open(place)) {
        AgentIdentity identity;
        identity.host = "leader";
        identity.endpoint = "ipc://" + place.root + "/leader.sock";
        service_.emplace(*engine_, identity);
        if (place.tcp) service_->take_key(place.key());
    }

    /// Asks these, over connections of its own.
    class Questions {
    public:
        Questions(Leader& leader, const std::vector<std::string>& peers, std::size_t relay_beyond)
            : roster_(
                  *leader.service_, leader.context_, [] {}, leader.nudge_) {
            TreeShape shape;
            shape.beyond = relay_beyond;
            roster_.meet(peers, shape);
            check(roster_.nodes(), peers.size());
            expected_ = peers.size();
        }
        /// @return how long it took until all had answered, a time; in milliseconds
        template <class Request>
        double ask_ms(const Request& request, int times) {
            Round round;
            round.action = "ask";
            std::size_t answers = 0;
            round.request = [&](NodeState&, std::uint64_t id) { return pack(id, request); };
            round.reply = [&](NodeState&, fbs::MessageT&) { ++answers; };
            const double from = seconds(CLOCK_MONOTONIC);
            for (int i = 0; i < times; ++i) roster_.run(round);
            const double ms = (seconds(CLOCK_MONOTONIC) - from) * 1e3 / times;
            if (answers != expected_ * static_cast<std::size_t>(times))
                fail({schema::ErrorCode::kInternal, "some have not answered"});
            return ms;
        }

    private:
        Roster roster_;
        std::size_t expected_ = 0;
    };

    struct Traced {
        std::map<std::string, double> ms;
        std::vector<double> bounds_us, rtts_us;
        std::uint64_t joined = 0, orphans = 0, relayed = 0, lost = 0;
        std::set<std::string> relays;  ///< by endpoint
        std::string index;
        double spread_ms = 0;
    };
    /// @param behind  each relay; 0: no tree
    Traced trace(const std::vector<std::string>& peers, std::uint32_t behind = 0) {
        fbs::TraceRequestT request;
        request.peers = peers;
        request.relay_beyond = behind != 0 ? behind : static_cast<std::uint32_t>(kMostPeers);
        request.nodes_a_relay = behind;
        request.duration_ms = kTraceMs;
        Cancel never;
        const std::uint64_t id = new_capture_id();
        TraceRun run(*service_, context_, request, id, never, [](const fbs::ProgressT&) {});
        auto reply = run.run();
        if (!reply) fail(reply.error());
        check(run.nodes(), peers.size());
        Traced traced;
        for (const TraceRun::PhaseTime& time : run.times())
            traced.ms[time.phase] = static_cast<double>(time.ns) / 1e6;
        for (const auto& node : reply->nodes) {
            if (node->name == engine_->options().node) continue;
            if (!node->relay.empty()) {
                ++traced.relayed;
                traced.relays.insert(node->relay);
            }
            traced.lost += node->lost;
            traced.bounds_us.push_back(static_cast<double>(node->clock->bound_ns()) / 1e3);
        }
        traced.joined = reply->joined_requests;
        traced.orphans = reply->orphans;
        traced.index = reply->job_index;
        traced.spread_ms = static_cast<double>(reply->start_spread_ns) / 1e6;
        return traced;
    }

private:
    static std::unique_ptr<Engine> open(const Place& place) {
        EngineOptions options;
        options.root = place.root;
        options.job = "leader";
        options.node = "leader";
        options.output_root = place.output;
        auto engine = Engine::open(options);
        if (!engine) fail(engine.error());
        return std::move(*engine);
    }
    static void check(const std::vector<NodeState>& nodes, std::size_t peers) {
        if (nodes.size() != peers + 1)
            fail({schema::ErrorCode::kInternal, "some peers are missing"});
        for (const NodeState& node : nodes) {
            if (!node.error.message.empty()) fail(node.error);
        }
    }

    std::unique_ptr<Engine> engine_;
    std::optional<NodeService> service_;
    zmq::context_t context_;
    Event nudge_;
};

void lead(const Place& place, int count, int rounds) {
    Leader leader(place);
    std::vector<std::string> peers;
    for (int n = 0; n < count; ++n) peers.push_back(place.endpoint(n));
    const auto one = [&](int n) {
        return std::vector<std::string>{peers[static_cast<std::size_t>(n)]};
    };
    std::printf("{\"count\": %d", count);
    // In turns, so that what one question takes is of the same moments as what all take.
    const auto ask = [&](const char* name, const auto& request) {
        Leader::Questions first(leader, one(0), kMostPeers),
            again(leader, one(count - 1), kMostPeers), direct(leader, peers, kMostPeers),
            relayed(leader, peers, kRelayedBeyond);
        std::map<const char*, std::vector<double>> ms;
        for (int i = 0; i < rounds; ++i) {
            ms["one_ms"].push_back(first.ask_ms(request, kInARow));
            ms["all_ms"].push_back(direct.ask_ms(request, 1));
            ms["again_ms"].push_back(again.ask_ms(request, kInARow));
            ms["relayed_ms"].push_back(relayed.ask_ms(request, 1));
        }
        std::printf(", \"%s\": {", name);
        const char* separator = "";
        for (auto& [key, values] : ms) {
            std::printf("%s\"%s\": [", std::exchange(separator, ", "), key);
            for (std::size_t i = 0; i < values.size(); ++i)
                std::printf("%s%.5f", i == 0 ? "" : ", ", values[i]);
            std::printf("]");
        }
        std::printf("}");
    };
    ask("ping", fbs::PingRequestT{});
    ask("status", fbs::StatusRequestT{});
    std::map<std::string, std::vector<double>> single;
    double single_bound = 0;
    for (int i = 0; i < kSingleTraces; ++i) {
        const auto traced = leader.trace(one(i * (count - 1) / kSingleTraces));
        for (const auto& [phase, ms] : traced.ms) single[phase].push_back(ms);
        single_bound = median(traced.bounds_us);
    }
    const double peak = peak_kib(), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    const auto traced = leader.trace(peers);
    std::printf(", \"cpu_ms\": %.3f, \"kib_a_node\": %.3f",
                (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 1e3, (peak_kib() - peak) / count);
    for (const auto& [phase, ms] : traced.ms)
        std::printf(", \"%s\": {\"one_ms\": %.4f, \"all_ms\": %.4f}",
                    phase == "ping" ? "clocks" : phase.c_str(), median(single[phase]), ms);
    std::printf(
        ", \"bound_us\": [%.1f, %.1f, %.1f], \"joined\": %llu, \"orphans\": %llu, "
        "\"spread_ms\": %.3f}\n",
        single_bound, median(traced.bounds_us),
        *std::max_element(traced.bounds_us.begin(), traced.bounds_us.end()),
        static_cast<unsigned long long>(traced.joined),
        static_cast<unsigned long long>(traced.orphans), traced.spread_ms);
}

/// Of the processes in which the relays are.
struct Cost {
    double cpu_ms = 0, kib = 0;
};
Cost cost_of(const std::vector<std::string>& relays) {
    std::map<std::uint32_t, Cost> processes;
    for (const std::string& endpoint : relays) {
        auto client = Client::connect(endpoint);
        if (!client) fail(client.error());
        auto status = (*client)->ask<fbs::StatusReplyT>(fbs::StatusRequestT{});
        if (!status) fail(status.error());
        processes[status->pid] = {static_cast<double>(status->cpu_ns) / 1e6,
                                  static_cast<double>(status->resident_bytes) / 1024};
    }
    Cost sum;
    for (const auto& [pid, cost] : processes) {
        sum.cpu_ms += cost.cpu_ms;
        sum.kib += cost.kib;
    }
    return sum;
}

/// What a trace takes: here, and in the relays' processes.
struct Led {
    Leader::Traced traced;
    double wall_ms, cpu_ms, kib;
    Cost relays;
};
Led led(Leader& leader, const std::vector<std::string>& peers,
        const std::vector<std::string>& relays, std::uint32_t behind) {
    const Cost before = cost_of(relays);
    const double peak = peak_kib(), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID),
                 wall = seconds(CLOCK_MONOTONIC);
    Led led;
    led.traced = leader.trace(peers, behind);
    led.wall_ms = (seconds(CLOCK_MONOTONIC) - wall) * 1e3;
    led.cpu_ms = (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 1e3;
    led.kib = peak_kib() - peak;
    const Cost after = cost_of(relays);
    led.relays = {after.cpu_ms - before.cpu_ms, after.kib - before.kib};
    return led;
}

/// The first of the agents are whole and become relays, in whose processes a second of being no relay is subtracted from one of being it.
void lead_tree(const Place& place, int count, int relay_count) {
    Leader leader(place);
    const int behind = count / relay_count - 1;
    std::vector<std::string> relays, peers;
    int leaf = relay_count;
    for (int n = 0; n < relay_count; ++n) {
        relays.push_back(place.endpoint(n));
        peers.push_back(relays.back());
        for (int i = 0; i < behind; ++i) peers.push_back(place.endpoint(leaf++));
    }
    const Led alone = led(leader, relays, relays, 0);
    const Led all = led(leader, peers, relays, static_cast<std::uint32_t>(behind));
    if (all.traced.relayed != static_cast<std::uint64_t>(leaf - relay_count))
        fail({schema::ErrorCode::kInternal, "some nodes have not been behind a relay"});
    const double idle_ms = alone.relays.cpu_ms * (all.wall_ms / alone.wall_ms);
    std::vector<double> bounds = all.traced.bounds_us;
    std::printf(
        "{\"count\": %zu, \"relays\": %d, \"wall_ms\": %.1f, \"cpu_ms\": %.3f, \"kib_a_node\": "
        "%.3f, \"relay_cpu_ms\": %.3f, \"relay_idle_cpu_ms\": %.3f, \"relay_kib\": %.1f",
        peers.size(), relay_count, all.wall_ms, all.cpu_ms,
        all.kib / static_cast<double>(peers.size()), all.relays.cpu_ms / relay_count,
        idle_ms / relay_count, all.relays.kib / relay_count);
    for (const auto& [phase, ms] : all.traced.ms)
        std::printf(", \"%s\": {\"all_ms\": %.4f}", phase == "ping" ? "clocks" : phase.c_str(), ms);
    std::printf(
        ", \"bound_us\": [%.1f, %.1f, %.1f], \"joined\": %llu, \"orphans\": %llu, "
        "\"spread_ms\": %.3f}\n",
        median(alone.traced.bounds_us), median(bounds),
        *std::max_element(bounds.begin(), bounds.end()),
        static_cast<unsigned long long>(all.traced.joined),
        static_cast<unsigned long long>(all.traced.orphans), all.traced.spread_ms);
}

void lead_whole(const Place& place, int count, int behind) {
    Leader leader(place);
    std::vector<std::string> peers;
    for (int n = 0; n < count; ++n) peers.push_back(place.endpoint(n));
    const double before = resident_kib();
    const auto traced = leader.trace(peers, static_cast<std::uint32_t>(behind));
    std::printf(
        "{\"relayed\": %llu, \"relays\": %zu, \"joined\": %llu, \"orphans\": %llu, \"lost\": "
        "%llu, \"kib_a_node\": %.1f, \"index\": \"%s\"}\n",
        static_cast<unsigned long long>(traced.relayed), traced.relays.size(),
        static_cast<unsigned long long>(traced.joined),
        static_cast<unsigned long long>(traced.orphans),
        static_cast<unsigned long long>(traced.lost), (resident_kib() - before) / count,
        traced.index.c_str());
}

}  // namespace
}  // namespace ringside::bench

int main(int count, char** arguments) {
    using namespace ringside::agent;
    using namespace ringside::bench;
    // To standard output, which is a pipe that nobody empties meanwhile: what agents say at "info" would fill it.
    spdlog::set_level(spdlog::level::warn);
    const std::string mode = count == 7 ? arguments[1] : "";
    if (mode.empty()) {
        std::fputs("usage: agents serve|light|lead|whole|tree ROOT OUTPUT ipc|tcp NUMBER NUMBER\n",
                   stderr);
        return 2;
    }
    const Place place{arguments[2], arguments[3], std::string(arguments[4]) == "tcp"};
    const int first = std::atoi(arguments[5]), second = std::atoi(arguments[6]);
    if (mode == "key") {
        if (auto written = write_key(place.root + "/key", *make_key()); !written)
            fail(written.error());
    }
    if (mode == "serve") serve(place, first, second);
    if (mode == "light") serve_light(place, first, second);
    if (mode == "lead") lead(place, first, second);
    if (mode == "whole") lead_whole(place, first, second);
    if (mode == "tree") lead_tree(place, first, second);
}
