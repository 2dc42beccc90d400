// The engine's words as messages, and back. One function a message; both the server and the leader (for its own node) use them, so that
// a leader sees its own node exactly as it sees a peer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/capture/engine.hpp"
#include "agent/control/messages.hpp"
#include "agent/correlate/halves.hpp"
#include "agent/correlate/iteration_table.hpp"

namespace ringside::agent {

/// Who this agent is: what the engine doesn't know of itself.
struct AgentIdentity {
    std::string host;
    std::string version;
    std::string endpoint;
    std::int64_t started_monotonic_ns = 0;
};

fbs::StatusReplyT status_reply(const Engine& engine, const AgentIdentity& identity);
fbs::ProcessesReplyT processes_reply(Engine& engine);
fbs::PrepareReplyT prepare_reply(const Engine& engine, const AgentIdentity& identity,
                                 const PrepareReport& report);
fbs::StopReplyT stop_reply(const Engine& engine, const AgentIdentity& identity,
                           const CaptureReport& report, std::uint64_t halves_count);
/// What each source reached, as messages carry it.
std::vector<std::unique_ptr<fbs::SourceT>> source_tables(std::span<const SourceReport> sources);
/// What a ProcessResult and a ProcessVerdict both tell of a process.
template <class Table>
void put_outcome(Table& table, const ProcessOutcome& outcome) {
    table.pid = outcome.pid;
    table.rank = outcome.rank;
    table.command = outcome.command;
    table.verdict = static_cast<fbs::Verdict>(outcome.verdict);
    table.reason = outcome.reason;
    table.events = outcome.events;
    table.lost = outcome.lost;
    table.start_delay_ns = outcome.start_delay_ns;
    if (outcome.iterations)
        table.iterations =
            std::make_unique<fbs::IterationsT>(iterations_table(*outcome.iterations));
    table.host_pid = outcome.host_pid;
    table.bytes = outcome.bytes;
    table.sources = source_tables(outcome.sources);
    table.executable = outcome.executable;
}
/// Halves [first, first + most) of `halves`, packed at once: their names are few and repeat, so the message shares them.
MessageBytes pack_halves(std::uint64_t id, std::span<const Half> halves, std::uint64_t first,
                         std::uint32_t most);

fbs::ArmReplyT arm_reply(const Engine& engine, const AgentIdentity& identity,
                         const ArmReport& report);
fbs::DisarmReplyT disarm_reply(const Engine& engine, const AgentIdentity& identity,
                               const DisarmReport& report);
ArmRequest arm_request(const fbs::ArmRequestT& request);
CaptureRequest capture_request(const fbs::PrepareRequestT& request);
fbs::IterationsReplyT iterations_reply(const IterationProgress& progress);
/// What a node says that has ended a capture by itself.
/// @param early_ns  before the end that was asked for
std::string early_text(std::int64_t early_ns, const std::string& cause);
Calibration calibration_of(const fbs::StopReplyT& reply);
ProcessOutcome outcome_of(const fbs::ProcessResultT& result);
Half half_of(const fbs::HalfT& half);

}  // namespace ringside::agent
