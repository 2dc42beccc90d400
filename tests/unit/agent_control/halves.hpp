// Captures for the join's tests, made by hand: a job that is written down as calls, seen by nodes whose clocks are skewed.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "agent/correlate/halves.hpp"
#include "agent/correlate/join.hpp"

namespace ringside::agent::test {

inline constexpr std::int64_t kMs = 1'000'000;
inline constexpr std::int64_t kTrueStart = 1'790'000'000'000'000'000;  ///< leader_ns of tick 0

/// A node whose ticks are true nanoseconds since kTrueStart, whose clock is `skew_ns` off, and whose measured correction is right.
inline NodeCapture node(const std::string& name, std::int64_t skew_ns = 0,
                        std::int64_t bound_ns = 50'000) {
    NodeCapture capture;
    capture.name = name;
    capture.calibration = {0, kTrueStart + skew_ns, 1e9, 0, schema::TicksSource::kTsc};
    capture.clock = {{kTrueStart}, -skew_ns, 0, bound_ns};
    capture.start_ticks = 1;
    capture.stop_ticks = 1000 * kMs;
    return capture;
}

inline ProcessOutcome process(std::uint32_t index, std::vector<std::string> workers) {
    ProcessOutcome outcome;
    outcome.index = index;
    outcome.pid = 1000 + static_cast<int>(index);
    outcome.command = "python job.py";
    outcome.workers = std::move(workers);
    outcome.start_delay_ns = 0;
    return outcome;
}

inline ProcessOutcome killed(ProcessOutcome outcome, std::int64_t end_ticks) {
    outcome.fate = Fate::kKilled;
    outcome.verdict = Verdict::kKilled;
    outcome.end_ticks = static_cast<std::uint64_t>(end_ticks);
    return outcome;
}

/// @param end_ticks  0: not ended
inline Half half(bool server, const std::string& self, const std::string& peer,
                 std::uint64_t wire_id, std::int64_t begin_ticks, std::int64_t end_ticks) {
    static std::uint64_t position = 0;
    Half made;
    made.server = server;
    made.self = self;
    made.peer = peer;
    made.wire_id = wire_id;
    const std::string& from = server ? peer : self;
    const std::string& to = server ? self : peer;
    made.id.span = schema::torch_span_id(from.c_str(), to.c_str(), wire_id);
    made.begin_ticks = static_cast<std::uint64_t>(begin_ticks);
    made.end_ticks = static_cast<std::uint64_t>(end_ticks);
    made.ended = end_ticks != 0;
    made.position = position += 3;
    made.key = made.position;
    return made;
}
inline Half client(const std::string& self, const std::string& peer, std::uint64_t wire_id,
                   std::int64_t begin_ticks, std::int64_t end_ticks) {
    return half(false, self, peer, wire_id, begin_ticks, end_ticks);
}
inline Half server(const std::string& self, const std::string& peer, std::uint64_t wire_id,
                   std::int64_t begin_ticks, std::int64_t end_ticks) {
    return half(true, self, peer, wire_id, begin_ticks, end_ticks);
}

/// A half by its place in the input.
struct HalfIndex {
    std::uint32_t node = 0;
    std::uint32_t half = 0;
    auto operator<=>(const HalfIndex&) const = default;
};

struct Call {
    std::optional<HalfIndex> client;
    std::optional<HalfIndex> server;
    schema::TraceId trace;
    fbs::Call told;
    RpcState state() const { return told.state(); }
    auto order() const {
        const bool called = client.has_value();
        return std::tuple(called ? told.client_begin_ns() : told.server_begin_ns(),
                          called ? *client : *server, called);
    }
};

/// What the join told, in the order of their begins.
class Calls final : public CallSink {
public:
    explicit Calls(const std::vector<NodeCapture>& nodes) {
        for (std::uint32_t n = 0; n < nodes.size(); ++n) {
            for (std::uint32_t h = 0; h < nodes[n].halves.size(); ++h) {
                const Half& half = nodes[n].halves[h];
                places_[{n, half.process, half.lane.index, half.position}] = {n, h};
            }
        }
    }
    void add(const fbs::Call& call) override {
        told.push_back(
            {at(call.client()), at(call.server()), {call.trace_hi(), call.trace_lo()}, call});
    }
    void sort() {
        std::sort(told.begin(), told.end(),
                  [](const Call& a, const Call& b) { return a.order() < b.order(); });
    }
    std::vector<Call> told;

private:
    std::optional<HalfIndex> at(const fbs::HalfRef& ref) const {
        if (ref.node() == kNoNode) return std::nullopt;
        return places_.at({ref.node(), ref.process(), ref.lane(), ref.position()});
    }
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint64_t>, HalfIndex>
        places_;
};

struct JoinResult {
    std::vector<Call> calls;
    JoinCounts counts;
};

inline JoinResult joined(const std::vector<NodeCapture>& nodes,
                         const JoinOptions& options = {7, true}) {
    Calls calls(nodes);
    const JoinCounts counts = join(nodes, options, calls);
    calls.sort();
    return {std::move(calls.told), counts};
}

}  // namespace ringside::agent::test
