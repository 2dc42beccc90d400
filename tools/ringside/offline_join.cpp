// JoinDump to NodeCapture, call times to ping samples, then join and build_job_index.
#include "tools/ringside/offline_join.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <unordered_map>
#include <utility>

#include "agent/clock/model.hpp"
#include "agent/correlate/halves.hpp"
#include "agent/correlate/job_writer.hpp"
#include "agent/correlate/join.hpp"

namespace ringside::tools {

using agent::ClockCorrection;
using agent::NodeCapture;
using agent::PingSample;
using schema::Nanoseconds;
using viewer_export::JoinDump;
using viewer_export::JoinHalf;

namespace {

agent::Half half_of(const JoinHalf& from) {
    agent::Half half;
    half.process = from.process;
    half.lane = {from.lane, from.generation};
    half.position = from.position;
    half.server = from.server;
    half.id = {from.trace, {from.span}};
    half.key = from.key;
    half.parent_key = from.parent_key;
    half.begin_ticks = from.begin_ticks;
    half.end_ticks = from.end_ticks;
    half.ended = from.ended;
    half.status = from.status;
    half.self = from.self;
    half.peer = from.peer;
    half.wire_type = from.wire_type;
    half.wire_id = from.wire_id;
    return half;
}

agent::ProcessOutcome outcome_of(const viewer_export::JoinProcess& from) {
    agent::ProcessOutcome outcome;
    outcome.index = from.index;
    outcome.pid = from.pid;
    outcome.rank = from.rank;
    outcome.command = from.command;
    outcome.fate = static_cast<agent::Fate>(from.fate);
    outcome.end_ticks = from.end_ticks;
    outcome.events = from.events;
    outcome.lost = from.lost;
    outcome.start_delay_ns = from.start_delay_ns;
    outcome.workers = from.workers;
    outcome.verdict = agent::Verdict::kCaptured;
    if (outcome.fate == agent::Fate::kKilled) {
        outcome.verdict = agent::Verdict::kKilled;
    } else if (outcome.fate == agent::Fate::kExited) {
        outcome.verdict = agent::Verdict::kExited;
    } else if (outcome.events == 0) {
        outcome.verdict = agent::Verdict::kNothingRecorded;
    }
    return outcome;
}

NodeCapture capture_of(const JoinDump& from) {
    NodeCapture capture;
    capture.name = from.node;
    capture.host = from.host;
    capture.dump = std::filesystem::path(from.path).filename().string();
    capture.calibration = {from.calibration.reference_ticks, from.calibration.reference_ns,
                           from.calibration.ticks_per_second, from.calibration.error_ppb,
                           static_cast<schema::TicksSource>(from.calibration.ticks_source)};
    capture.start_ticks = from.start_ticks;
    capture.stop_ticks = from.stop_ticks;
    for (const auto& process : from.processes) {
        capture.processes.push_back(outcome_of(process));
    }
    for (const JoinHalf& half : from.halves) {
        capture.halves.push_back(half_of(half));
    }
    return capture;
}

/// A whole call as two nodes saw it.
struct SharedCall {
    std::size_t client_node;
    std::size_t server_node;
    const agent::Half* client;
    const agent::Half* server;
};

/// Calls that both sides recorded to their end, with an id that occurs once on each: others could pair wrongly.
std::vector<SharedCall> shared_calls(const std::vector<NodeCapture>& nodes) {
    struct Sides {
        SharedCall call{};
        int clients = 0;
        int servers = 0;
    };
    std::unordered_map<std::uint64_t, Sides> spans;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
        for (const agent::Half& half : nodes[n].halves) {
            Sides& sides = spans[half.id.span.value];
            (half.server ? sides.call.server : sides.call.client) = &half;
            (half.server ? sides.call.server_node : sides.call.client_node) = n;
            ++(half.server ? sides.servers : sides.clients);
        }
    }
    std::vector<SharedCall> calls;
    for (const auto& [span, sides] : spans) {
        const bool whole = sides.clients == 1 && sides.servers == 1 && sides.call.client->ended &&
                           sides.call.server->ended;
        if (whole && sides.call.client_node != sides.call.server_node &&
            sides.call.client->status == schema::RpcStatus::kOk) {
            calls.push_back(sides.call);
        }
    }
    return calls;
}

Nanoseconds node_ns(const NodeCapture& node, std::uint64_t ticks) {
    return agent::node_time(node.calibration, schema::Ticks{ticks});
}

/// The call as a ping of `node` by `known`, whose times the leader's clock already tells.
PingSample as_ping(const SharedCall& call, const NodeCapture& known, const NodeCapture& node,
                   bool known_is_client) {
    const auto leader = [&](std::uint64_t ticks) {
        return known.node_clock().leader_ns(schema::Ticks{ticks}).value;
    };
    if (known_is_client) {
        return {{leader(call.client->begin_ticks)},
                node_ns(node, call.server->begin_ticks),
                {leader(call.client->end_ticks)}};
    }
    // The node called: its call encloses the moment at which the known side received it, so that moment told on the node's clock lies
    // between begin and end; moved to begin, the interval lies on the leader's side instead.
    const Nanoseconds begin = node_ns(node, call.client->begin_ticks);
    const std::int64_t took = node_ns(node, call.client->end_ticks).value - begin.value;
    const std::int64_t received = leader(call.server->begin_ticks);
    return {{received - took}, begin, {received}};
}

std::vector<PingSample> samples_between(const std::vector<SharedCall>& calls,
                                        const std::vector<NodeCapture>& nodes, std::size_t known,
                                        std::size_t node) {
    std::vector<PingSample> samples;
    for (const SharedCall& call : calls) {
        const bool forth = call.client_node == known && call.server_node == node;
        const bool back = call.client_node == node && call.server_node == known;
        if (forth || back) {
            samples.push_back(as_ping(call, nodes[known], nodes[node], forth));
        }
    }
    std::sort(samples.begin(), samples.end(), [](const PingSample& a, const PingSample& b) {
        return a.node_ns.value < b.node_ns.value;
    });
    return samples;
}

/// The node's times that a correction must cover: its halves, and the capture where its dump says when that was.
agent::NodeInterval recorded_interval(const NodeCapture& node) {
    std::uint64_t first =
        node.start_ticks != 0 ? node.start_ticks : node.calibration.reference_ticks;
    std::uint64_t last = std::max(node.stop_ticks, first);
    for (const agent::Half& half : node.halves) {
        first = std::min(first, half.begin_ticks);
        last = std::max({last, half.begin_ticks, half.ended ? half.end_ticks : 0});
    }
    return {node_ns(node, first), node_ns(node, last)};
}

agent::ClockMeasurement measure(const std::vector<PingSample>& samples, const NodeCapture& node) {
    const auto half = static_cast<std::ptrdiff_t>((samples.size() + 1) / 2);
    const std::vector<PingSample> before(samples.begin(), samples.begin() + half);
    const std::vector<PingSample> after(samples.begin() + half, samples.end());
    return agent::measure_clock(before, {}, after, recorded_interval(node));
}

/// Clocks spread from the first node along calls: a node that never spoke with it is reached through one that did.
void correct_clocks(std::vector<NodeCapture>& nodes) {
    const std::vector<SharedCall> calls = shared_calls(nodes);
    std::vector<std::size_t> reached = {0};
    std::vector<bool> known(nodes.size(), false);
    known[0] = true;
    for (std::size_t at = 0; at < reached.size(); ++at) {
        for (std::size_t n = 0; n < nodes.size(); ++n) {
            const auto samples = known[n] ? std::vector<PingSample>()
                                          : samples_between(calls, nodes, reached[at], n);
            if (samples.empty()) {
                continue;
            }
            const auto measured = measure(samples, nodes[n]);
            nodes[n].clock = measured.correction;
            nodes[n].clock.bound_ns += nodes[reached[at]].clock.bound_ns;
            nodes[n].best_rtt_ns = measured.best_rtt_ns;
            known[n] = true;
            reached.push_back(n);
        }
    }
    for (std::size_t n = 0; n < nodes.size(); ++n) {
        if (!known[n]) {
            nodes[n].clock =
                agent::measure_clock({}, {}, {}, recorded_interval(nodes[n])).correction;
        }
    }
}

}  // namespace

schema::Result<std::vector<std::uint8_t>> join_offline(const viewer_export::model::Job& job,
                                                       bool corrected) {
    std::vector<NodeCapture> nodes;
    for (const JoinDump& dump : viewer_export::join_input(job)) {
        nodes.push_back(capture_of(dump));
    }
    if (nodes.empty()) {
        return schema::Error{schema::ErrorCode::kInput,
                             "join: no dump was loaded; name at least one .rsd"};
    }
    correct_clocks(nodes);
    const std::uint64_t capture_id = job.nodes.front().capture_id;
    const agent::JoinResult joined = agent::join(nodes, {capture_id, corrected});
    return agent::build_job_index({job.name, nodes.front().name, capture_id, corrected}, nodes,
                                  joined);
}

}  // namespace ringside::tools
