// What the join is fed with: one NodeCapture a node, from the engine, from a peer's messages or from a dump that was read again. Plain
// data; nothing here knows a socket or a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/capture/engine.hpp"
#include "agent/clock/node_clock.hpp"

namespace ringside::agent {

/// What became of one process in a capture, as far as the join and the verdicts need it.
struct ProcessOutcome {
    std::uint32_t index = 0;  ///< in its node's dump
    int pid = 0;
    int rank = -1;
    std::string command;
    Fate fate = Fate::kRunning;
    std::uint64_t end_ticks = 0;  ///< when the agent saw that; meaningless while it runs
    Verdict verdict = Verdict::kCaptured;
    std::string reason;
    std::uint64_t events = 0;
    std::uint64_t lost = 0;
    std::int64_t start_delay_ns = -1;
    std::vector<std::string> workers;           ///< every name by which halves mean it
    std::optional<IterationReport> iterations;  ///< none: none were asked for
    int host_pid = 0;
    std::uint64_t bytes = 0;
    std::vector<SourceReport> sources;
    std::string executable;
};

/// One node's part of a capture.
struct NodeCapture {
    std::string name;
    std::string host;
    std::string endpoint;
    std::string dump;   ///< file name beside the index; empty: none
    std::string error;  ///< why it has none, or an incomplete one
    Calibration calibration;
    ClockCorrection clock;
    std::int64_t best_rtt_ns = 0;
    std::uint32_t pings = 0;
    std::int64_t start_delay_ns = 0;  ///< how late after the agreed instant it began
    std::uint64_t start_ticks = 0;    ///< 0: from the first instruction
    std::uint64_t stop_ticks = 0;
    std::vector<ProcessOutcome> processes;
    std::vector<Half> halves;
    bool halves_complete =
        true;  ///< false: they could not be read, so that their absence proves nothing

    NodeClock node_clock() const { return {calibration, clock}; }
};

/// How messages name a process, and nothing else does: its rank in the job (schema/README.md, "Messages").
std::string rank_name(int rank);
bool is_rank_name(std::string_view name);

/// What the join keeps of a process report.
ProcessOutcome outcome_of(const ProcessReport& report);

}  // namespace ringside::agent
