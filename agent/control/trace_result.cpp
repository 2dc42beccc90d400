#include "agent/control/trace_result.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

namespace ringside::agent {
namespace {

using schema::ErrorCode;

constexpr std::size_t kMostCause = 256;  ///< of what a node says, in each of its processes' words
constexpr std::int64_t kLeastEarlyNs = schema::kNsPerSecond;

/// A node that gave nothing stands in the verdicts with the reason.
ProcessOutcome verdict_of_missing(const NodeState& node) {
    ProcessOutcome outcome;
    outcome.command = node.endpoint;
    outcome.verdict =
        node.error.code == ErrorCode::kRefused ? Verdict::kRefused : Verdict::kUnreachable;
    outcome.reason = node.error.message;
    return outcome;
}

/// Node times that the capture's events may have.
NodeInterval span_of(const NodeCapture& capture) {
    const Nanoseconds stop = node_time(capture.calibration, Ticks{capture.stop_ticks});
    if (capture.start_ticks != 0)
        return {node_time(capture.calibration, Ticks{capture.start_ticks}), stop};
    Nanoseconds start = stop;
    for (const Half& half : capture.halves)
        start = std::min(start, node_time(capture.calibration, Ticks{half.begin_ticks}));
    return {start, stop};
}

/// By how much a node ended before the trace did, as it says itself or, of before it could, as its last tick does.
/// @return 0: it did not
std::int64_t early_ns(const NodeCapture& capture, const fbs::StopReplyT& stopped,
                      NodeInterval agreed) {
    if (stopped.early_ns > 0) return stopped.early_ns;
    // An agent that is told of the end ends then, by a clock that may have run apart since the beginning.
    const std::int64_t apart =
        static_cast<std::int64_t>(static_cast<double>(agreed.to.value - agreed.from.value) *
                                  kMaxDriftPpb * 1e-9) +
        std::min(capture.clock.bound_ns, kFarthestNs) + kLeastEarlyNs;
    const std::int64_t ended = capture.node_clock().leader_ns(Ticks{capture.stop_ticks}).value;
    const std::int64_t early = agreed.to.value - std::clamp(ended, -kFarthestNs, kFarthestNs);
    return early > apart ? early : 0;
}

/// The node has an error then, and its processes that were not recorded to the end say so.
void say_early(NodeCapture& capture, const fbs::StopReplyT& stopped, NodeInterval agreed) {
    const std::int64_t early = early_ns(capture, stopped, agreed);
    if (early == 0) return;
    const std::string cause = stopped.early_cause.empty()
                                  ? "a reason that its agent, an older one, does not tell"
                                  : stopped.early_cause.substr(0, kMostCause);
    if (stopped.early_ns <= 0)
        capture.error += (capture.error.empty() ? "" : "; ") + early_text(early, cause);
    for (ProcessOutcome& process : capture.processes) {
        if (process.verdict != Verdict::kCaptured) continue;
        process.reason += (process.reason.empty() ? "" : "; ") +
                          ("not its last " + std::to_string(early / schema::kNsPerMillisecond)) +
                          " ms: " + cause;
    }
}

NodeCapture capture_of(const std::vector<NodeState>& nodes, NodeState& node) {
    NodeCapture capture;
    capture.name = node.name;
    capture.host = node.host;
    capture.endpoint = node.endpoint;
    capture.error = node.error.message;
    if (!node.stopped) {
        if (node.error.code != ErrorCode::kNothingMatched)
            capture.processes.push_back(verdict_of_missing(node));
        return capture;
    }
    const fbs::StopReplyT& stopped = *node.stopped;
    capture.dump = stopped.path.substr(stopped.path.rfind('/') + 1);
    if (capture.error.empty()) capture.error = stopped.error;
    capture.calibration = calibration_of(stopped);
    capture.start_ticks = stopped.start_ticks;
    capture.stop_ticks = stopped.stop_ticks;
    for (const auto& process : stopped.processes) capture.processes.push_back(outcome_of(*process));
    capture.halves_complete = node.halves.size() >= stopped.halves_count;
    if (capture.halves_complete) capture.halves = std::move(node.halves);
    if (node.own()) return capture;
    const ClockMeasurement measured = clock_of(nodes, node, span_of(capture));
    capture.clock = measured.correction;
    capture.best_rtt_ns = measured.best_rtt_ns;
    capture.pings = measured.pings;
    return capture;
}

fbs::TraceNodeT node_of(const std::vector<NodeState>& nodes, const NodeState& state,
                        const NodeCapture& capture) {
    fbs::TraceNodeT node;
    node.name = capture.name;
    node.host = capture.host;
    node.endpoint = capture.endpoint;
    node.error = capture.error;
    const ClockCorrection& clock = capture.clock;
    node.clock = std::make_unique<fbs::ClockCorrection>(
        clock.reference_node_ns.value, clock.offset_ns, clock.drift_ppb, clock.bound_ns);
    node.start_delay_ns = capture.start_delay_ns;
    node.not_meant = state.not_meant;
    if (state.relay != NodeState::kNone) node.relay = nodes[state.relay].endpoint;
    if (!state.stopped) return node;
    node.path = state.stopped->path;
    node.bytes = state.stopped->bytes;
    node.records = state.stopped->records;
    node.lost = state.stopped->lost;
    node.record_cost_ns = state.stopped->record_cost_ns;
    node.history_ns = state.stopped->history_ns;
    node.window_note = state.stopped->window_note;
    node.left_out = state.stopped->left_out;
    if (state.stopped->perturbation)
        node.perturbation = std::make_unique<fbs::PerturbationT>(*state.stopped->perturbation);
    return node;
}

std::unique_ptr<fbs::ProcessVerdictT> verdict_table(std::uint32_t node,
                                                    const ProcessOutcome& process) {
    auto table = std::make_unique<fbs::ProcessVerdictT>();
    table->node = node;
    table->process = process.index;
    put_outcome(*table, process);
    return table;
}

}  // namespace

TraceResult make_result(std::vector<NodeState>& nodes, Nanoseconds start_ns, Nanoseconds stop_ns) {
    TraceResult result;
    std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
    std::int64_t latest = std::numeric_limits<std::int64_t>::min();
    for (NodeState& node : nodes) {
        NodeCapture capture = capture_of(nodes, node);
        if (node.stopped && start_ns.value != 0)
            say_early(capture, *node.stopped, {start_ns, stop_ns});
        if (node.stopped && capture.start_ticks != 0 && start_ns.value != 0) {
            // An order that came after its instant: the node dropped what came before the order.
            capture.start_delay_ns =
                std::max<std::int64_t>(0, node.begun_by_ns.value - start_ns.value);
            // What a window gave of the time before is not part of how the nodes started together.
            const std::int64_t began =
                capture.node_clock().leader_ns(Ticks{capture.start_ticks}).value +
                std::clamp<std::int64_t>(node.stopped->history_ns, 0, kFarthestNs);
            const std::int64_t bound = std::min(capture.clock.bound_ns, kFarthestNs);
            earliest = std::min(earliest, began - bound);
            latest = std::max(latest, began + bound + capture.start_delay_ns);
        }
        if (node.stopped) {
            const NodeInterval span = span_of(capture);
            result.duration_ns = std::max(result.duration_ns, span.to.value - span.from.value);
        }
        result.nodes.push_back(node_of(nodes, node, capture));
        result.captures.push_back(std::move(capture));
    }
    if (latest >= earliest) result.start_spread_ns = latest - earliest;
    return result;
}

fbs::TraceReplyT trace_reply(TraceResult& result, const JoinCounts& counts) {
    fbs::TraceReplyT reply;
    for (std::uint32_t n = 0; n < result.captures.size(); ++n) {
        for (const ProcessOutcome& process : result.captures[n].processes)
            reply.verdicts.push_back(verdict_table(n, process));
        reply.nodes.push_back(std::make_unique<fbs::TraceNodeT>(std::move(result.nodes[n])));
    }
    reply.joined_requests = counts.joined_requests;
    reply.joined_replies = counts.joined_replies;
    reply.orphans = counts.orphans;
    reply.cut = counts.cut;
    reply.unfinished = counts.unfinished;
    reply.ambiguous = counts.ambiguous;
    reply.order_violations = counts.order_violations;
    reply.start_spread_ns = result.start_spread_ns;
    return reply;
}

}  // namespace ringside::agent
