// Captures for the join's tests, made by hand: a job that is written down as calls, seen by nodes whose clocks are skewed.
#pragma once

#include <cstdint>
#include <string>
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

}  // namespace ringside::agent::test
