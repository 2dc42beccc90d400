#include "tools/ringside/offline_join.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "agent/correlate/join.hpp"
#include "tools/ringside/call_clocks.hpp"
#include "viewer_export/load/rpc_records.hpp"

namespace ringside::tools {

using agent::NodeCapture;
using viewer_export::RpcRecord;
using viewer_export::RpcRecords;

namespace {

/// A step through all nodes tells about so many records: enough that the steps cost little, few beside what is open.
constexpr std::uint64_t kRecordsInStep = 2048;
/// What begins to be busy after an idle hour is not taken by the hour.
constexpr std::int64_t kLongestStepNs = 50'000'000;
/// Leader's time to a node's ticks and back: within a nanosecond each way.
constexpr std::int64_t kRoundingNs = 1000;

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
    if (from.has_mpi && from.rank >= 0) outcome.workers.push_back(agent::rank_name(from.rank));
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

NodeCapture capture_of(const RpcRecords& from) {
    NodeCapture capture;
    capture.name = from.node;
    capture.host = from.host;
    capture.dump = std::filesystem::path(from.path).filename().string();
    capture.calibration = {from.calibration.reference_ticks, from.calibration.reference_ns,
                           from.calibration.ticks_per_second, from.calibration.error_ppb,
                           static_cast<schema::TicksSource>(from.calibration.ticks_source)};
    capture.start_ticks = from.start_ticks;
    capture.stop_ticks = from.stop_ticks;
    for (const auto& process : from.processes()) capture.processes.push_back(outcome_of(process));
    return capture;
}

/// Feeds the join with one node's records.
class NodeFeed {
public:
    NodeFeed(RpcRecords& records, std::uint32_t node, const NodeCapture& capture, agent::Join& join)
        : records_(records), clock_(capture.node_clock()), join_(join) {
        for (const auto& process : records.processes())
            processes_.push_back({join.process(node, process.index), {}});
    }

    /// @return when its next record is, leader_ns
    std::int64_t tell_until(std::int64_t limit_ns) {
        const std::uint64_t next = records_.read_until(
            ticks_at(limit_ns), [this](const RpcRecord& record) { take(record); });
        return next == RpcRecords::kEnd ? std::numeric_limits<std::int64_t>::max()
                                        : clock_.leader_ns(schema::Ticks{next}).value;
    }
    std::uint64_t records() const { return count_; }
    std::uint64_t halves() const { return halves_; }

private:
    struct Process {
        std::uint32_t number;
        std::vector<std::uint32_t>
            workers;  ///< the join's numbers of them by name id; ~0: not known yet
    };

    std::uint64_t ticks_at(std::int64_t leader_ns) const {
        if (leader_ns == std::numeric_limits<std::int64_t>::max()) return RpcRecords::kEnd;
        const agent::Calibration& calibration = clock_.calibration;
        const std::int64_t ns = clock_.correction.node_ns({leader_ns}).value;
        const auto run = static_cast<std::int64_t>(
            static_cast<std::uint64_t>(ns) - static_cast<std::uint64_t>(calibration.reference_ns));
        // From the reference on: whole ticks may be beyond what a double holds.
        const double ticks = static_cast<double>(run) * calibration.ticks_per_second / 1e9;
        const double at = static_cast<double>(calibration.reference_ticks) + ticks;
        if (!(at > 0) || ticks < -9e18) return 0;
        if (at >= 1.8e19 || ticks > 9e18) return RpcRecords::kEnd;
        return calibration.reference_ticks +
               static_cast<std::uint64_t>(static_cast<std::int64_t>(ticks));
    }

    void take(const RpcRecord& record) {
        ++count_;
        Process& process = processes_[record.process];
        const std::uint64_t* words = record.words;
        if (!record.begin) {
            return join_.end(process.number, words[2], words[1],
                             static_cast<schema::RpcStatus>(words[3] >> 56));
        }
        ++halves_;
        agent::HalfBegin half;
        half.process = process.number;
        half.peer = worker(process, record.process, static_cast<std::uint32_t>(words[8]));
        half.lane = {record.lane, record.generation};
        half.position = record.position;
        half.server = (words[11] >> 8 & 0xff) != 0;
        half.id = {{words[4], words[5]}, {words[6]}};
        half.key = words[2];
        half.parent_key = words[7];
        half.ticks = words[1];
        half.wire_id = words[10];
        join_.begin(half);
    }

    std::uint32_t worker(Process& process, std::uint32_t place, std::uint32_t name) {
        if (name >= records_.names(place)) return join_.worker(records_.name(place, name));
        if (process.workers.empty()) process.workers.assign(records_.names(place), ~0u);
        std::uint32_t& number = process.workers[name];
        if (number == ~0u) number = join_.worker(records_.name(place, name));
        return number;
    }

    RpcRecords& records_;
    const agent::NodeClock clock_;
    agent::Join& join_;
    std::vector<Process> processes_;
    std::uint64_t count_ = 0;
    std::uint64_t halves_ = 0;
};

/// All nodes' records, a step of time after the other.
void feed(agent::Join& join, std::vector<NodeFeed>& feeds) {
    constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
    std::int64_t limit = std::numeric_limits<std::int64_t>::min();
    std::int64_t step = 1'000'000;
    std::uint64_t told = 0;
    while (limit != kEnd) {
        std::int64_t next = kEnd;
        for (NodeFeed& node : feeds) next = std::min(next, node.tell_until(limit));
        if (limit != std::numeric_limits<std::int64_t>::min()) join.advance(limit - kRoundingNs);
        std::uint64_t sum = 0;
        for (const NodeFeed& node : feeds) sum += node.records();
        const std::uint64_t count = sum - std::exchange(told, sum);
        if (count == 0) {
            // A rate at which no time that we tell reaches the record: only so is the end ever reached.
            step = 2 * std::min(step, kEnd / 4);
        } else if (step > kLongestStepNs) {
            step = kLongestStepNs;
        } else if (count > 2 * kRecordsInStep) {
            step = std::max<std::int64_t>(step / 2, kRoundingNs);
        } else if (count < kRecordsInStep / 2) {
            step = std::min(step * 2, kLongestStepNs);
        }
        // Times that far are somebody's invention: they are told at the end.
        limit = std::max(limit, next);
        limit = limit >= agent::kFarthestNs - step ? kEnd : limit + step;
    }
}

}  // namespace

schema::Result<OfflineJoin> join_offline(const std::vector<std::filesystem::path>& dumps,
                                         bool corrected, agent::IndexWriter& index) {
    auto nodes = viewer_export::rpc_records(dumps);
    if (!nodes) return nodes.error();
    if (nodes->empty()) {
        return schema::Error{schema::ErrorCode::kInput,
                             "join: no dump is named; name at least one .rsd"};
    }
    CallClocks clocks(nodes->size());
    std::vector<NodeCapture> captures;
    agent::JobHeader header;
    header.capture_id = nodes->front().capture_id;
    header.leader = nodes->front().node;
    header.corrected = corrected;
    for (std::uint32_t n = 0; n < nodes->size(); ++n) {
        RpcRecords& records = (*nodes)[n];
        records.scan([&](const RpcRecord& record) { clocks.add(n, record); });
        captures.push_back(capture_of(records));
        if (header.job.empty()) header.job = records.job;
    }
    clocks.correct(captures);
    agent::Join join(captures, {header.capture_id, corrected}, index);
    std::vector<NodeFeed> feeds;
    for (std::uint32_t n = 0; n < nodes->size(); ++n)
        feeds.emplace_back((*nodes)[n], n, captures[n], join);
    feed(join, feeds);
    OfflineJoin result;
    result.counts = join.finish();
    result.most_open = join.most_open();
    for (const NodeFeed& node : feeds) result.halves += node.halves();
    auto path = index.finish(header, captures, result.counts);
    if (!path) return path.error();
    result.path = std::move(*path);
    return result;
}

}  // namespace ringside::tools
