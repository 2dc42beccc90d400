// What an offline join needs of loaded dumps: every half with its identity, names and raw ticks, and what became of the processes.
// The command turns it into the join's own types: this folder doesn't know the agent's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "viewer_export/model/job.hpp"

namespace ringside::viewer_export {

/// As `Half` in control.fbs.
struct JoinHalf {
    std::uint32_t process = 0;  ///< index in its dump
    std::uint32_t lane = 0;
    std::uint32_t generation = 0;
    std::uint64_t position = 0;
    bool server = false;
    std::uint64_t span = 0;
    schema::TraceId trace;
    std::uint64_t key = 0;
    std::uint64_t parent_key = 0;
    std::uint64_t begin_ticks = 0;
    std::uint64_t end_ticks = 0;
    bool ended = false;
    schema::RpcStatus status = schema::RpcStatus::kOk;
    std::string self;
    std::string peer;
    std::uint32_t wire_type = 0;
    std::uint64_t wire_id = 0;
};

/// As `ProcessResult` in control.fbs.
struct JoinProcess {
    std::uint32_t index = 0;
    std::int32_t pid = 0;
    std::int32_t rank = -1;
    std::string command;
    model::Fate fate = model::Fate::kRunning;
    std::uint64_t end_ticks = 0;  ///< 0: the dump doesn't say
    std::vector<std::string> workers;
    std::uint64_t events = 0;  ///< records kept
    std::uint64_t lost = 0;
    std::int64_t start_delay_ns = -1;
};

struct JoinDump {
    std::string node;
    std::string host;
    std::string path;
    std::uint64_t capture_id = 0;
    model::Calibration calibration;
    std::uint64_t start_ticks = 0;
    std::uint64_t stop_ticks = 0;  ///< 0: the dump was cut short
    double record_cost_ns = 0;
    std::vector<JoinProcess> processes;
    std::vector<JoinHalf> halves;
};

/// One entry a loaded node, in Job::nodes' order; nodes without a dump are left out.
std::vector<JoinDump> join_input(const model::Job& job);

}  // namespace ringside::viewer_export
