// Agents whose fake nodes call each other, and a leader's request over them: what tests of traces share.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agents.hpp"
#include "halves.hpp"

namespace ringside::agent::test {

/// A process that goes by `worker`.
inline ProcessReport worker_process(const std::string& worker) {
    ProcessReport report;
    report.pid = 1;
    report.executable = "/usr/bin/python3";
    report.worker_name = worker;
    report.workers = {worker};
    report.attached = true;
    report.start_delay_ns = 1000;
    report.events = 10;
    return report;
}

/// Calls of worker0 to the others, one after another through the whole capture, whatever each node's clock says. All fake nodes count
/// the host's ticks, so that true order is the order of ticks.
inline void record_calls(Agent& agent, int number, int nodes) {
    agent.engine.processes_to_give = {worker_process("worker" + std::to_string(number))};
    agent.engine.on_stop = [number, nodes](FakeEngine& engine, std::uint64_t start,
                                           std::uint64_t stop) {
        const auto first = static_cast<std::int64_t>(start) + 5 * kMs;
        const auto last = static_cast<std::int64_t>(stop) - 5 * kMs;
        engine.halves_to_give.clear();
        // Instants that all nodes agree on: multiples of 2 ms of the common ticks.
        std::uint64_t id = 0;
        for (std::int64_t t = (first / (2 * kMs) + 1) * 2 * kMs; t < last; t += 2 * kMs) {
            id = static_cast<std::uint64_t>(t / (2 * kMs));
            const int callee = 1 + static_cast<int>(id % static_cast<std::uint64_t>(nodes - 1));
            const std::string to = "worker" + std::to_string(callee);
            if (number == 0)
                engine.halves_to_give.push_back(client("worker0", to, id, t, t + 900'000));
            if (number == callee)
                engine.halves_to_give.push_back(
                    server(to, "worker0", id, t + 300'000, t + 600'000));
        }
    };
}

inline std::unique_ptr<Client> client_of(const Agent& agent) {
    auto client = Client::connect(agent.endpoint);
    REQUIRE(client);
    return std::move(*client);
}

inline fbs::TraceRequestT request_over(const std::vector<std::string>& peers,
                                       std::uint32_t duration_ms) {
    fbs::TraceRequestT request;
    request.peers = peers;
    request.duration_ms = duration_ms;
    request.name = "cap";
    return request;
}

/// By how much a correction is wrong now, beyond its bound.
inline std::int64_t beyond_bound(const fbs::ClockCorrection& stored, const FakeEngine& leader,
                                 const FakeEngine& node) {
    const ClockCorrection clock{
        {stored.reference_node_ns()}, stored.offset_ns(), stored.drift_ppb(), stored.bound_ns()};
    const std::int64_t before = leader.node_now().value;
    const std::int64_t at = clock.leader_ns(node.node_now()).value;
    const std::int64_t after = leader.node_now().value;
    return std::max(
        {std::int64_t{0}, before - at - stored.bound_ns(), at - after - stored.bound_ns()});
}

}  // namespace ringside::agent::test
