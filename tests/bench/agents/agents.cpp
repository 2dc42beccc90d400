// Many agents and their leader. agents.py starts both.
//
//     agents serve ROOT OUTPUT ipc|tcp FIRST COUNT     COUNT whole agents; says "ready" as JSON, ends with its input
//     agents light ROOT OUTPUT ipc FIRST COUNT         COUNT that only answer
//     agents key ROOT OUTPUT tcp 0 0                   writes the key of them all
//     agents lead ROOT OUTPUT ipc|tcp COUNT ROUNDS     asks one, asks all, traces one, traces all; prints how long each took
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "agent/capture/engine.hpp"
#include "agent/control/lead_desk.hpp"
#include "agent/control/trace_run.hpp"
#include "tests/bench/agents/serving.hpp"

namespace ringside::bench {
namespace {

using namespace ringside::agent;

constexpr int kRounds = 300;  ///< with one agent
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

class Leader {
public:
    explicit Leader(const Place& place) : place_(place), engine_(open(place)) {
        AgentIdentity identity;
        identity.host = "leader";
        identity.endpoint = "ipc://" + place.root + "/leader.sock";
        service_.emplace(*engine_, identity);
        if (place.tcp) service_->take_key(place.key());
    }

    /// How long a question to all of these takes, in the median of some rounds; in milliseconds.
    template <class Request>
    double round_ms(const std::vector<std::string>& peers, const Request& request, int rounds) {
        Roster roster(
            *service_, context_, [] {}, nudge_);
        roster.meet(peers);
        check(roster.nodes(), peers.size());
        Round round;
        round.action = "ask";
        std::size_t answers = 0;
        round.request = [&](NodeState&, std::uint64_t id) { return pack(id, request); };
        round.reply = [&](NodeState&, fbs::MessageT&) { ++answers; };
        std::vector<double> times;
        for (int i = 0; i < rounds; ++i) {
            const double from = seconds(CLOCK_MONOTONIC);
            roster.run(round);
            times.push_back((seconds(CLOCK_MONOTONIC) - from) * 1e3);
        }
        if (answers != peers.size() * static_cast<std::size_t>(rounds))
            fail({schema::ErrorCode::kInternal, "some have not answered"});
        return median(times);
    }

    struct Traced {
        std::map<std::string, double> ms;
        std::vector<double> bounds_us, rtts_us;
        std::uint64_t joined = 0, orphans = 0;
        double spread_ms = 0;
    };
    Traced trace(const std::vector<std::string>& peers) {
        fbs::TraceRequestT request;
        request.peers = peers;
        request.duration_ms = kTraceMs;
        const Cancel never;
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
            traced.bounds_us.push_back(static_cast<double>(node->clock->bound_ns()) / 1e3);
        }
        traced.joined = reply->joined_requests;
        traced.orphans = reply->orphans;
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

    const Place& place_;
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
    const auto ask = [&](const char* name, const auto& request) {
        const double first = leader.round_ms(one(0), request, kRounds);
        const double all = leader.round_ms(peers, request, rounds);
        const double again = leader.round_ms(one(count - 1), request, kRounds);
        std::printf(", \"%s\": {\"one_ms\": %.5f, \"again_ms\": %.5f, \"all_ms\": %.4f}", name,
                    first, again, all);
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

}  // namespace
}  // namespace ringside::bench

int main(int count, char** arguments) {
    using namespace ringside::agent;
    using namespace ringside::bench;
    // To standard output, which is a pipe that nobody empties meanwhile: what agents say at "info" would fill it.
    spdlog::set_level(spdlog::level::warn);
    const std::string mode = count == 7 ? arguments[1] : "";
    if (mode.empty()) {
        std::fputs("usage: agents serve|light|lead ROOT OUTPUT ipc|tcp NUMBER NUMBER\n", stderr);
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
}
