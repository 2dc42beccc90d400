// A job as loaded: nodes, processes, lanes, their events, and the accounts that say what is missing. Built by load/job_loader, never
// changed by a view.
//
//   Job -- nodes -- processes -- lanes -- ranges          in order of begin, outer before inner
//    |                            |
//    +-- asyncs, halves, values --+   calls: halves joined by the index; servings: when which thread worked for a half
//    +-- gpu_work --> gpu_calls --+   gpu.hpp
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "viewer_export/model/event.hpp"
#include "viewer_export/model/gpu.hpp"
#include "viewer_export/model/open_calls.hpp"

namespace ringside::viewer_export::model {

/// Strings, each once.
class Names {
public:
    /// @return the index of `text`, added where it is new
    Index add(std::string_view text);
    /// @return the index of `text`, kNone where no event has it
    Index find(std::string_view text) const;
    /// @return the text; "" for kNone
    const std::string& operator[](Index index) const;
    std::size_t size() const { return texts_.size(); }

private:
    std::deque<std::string> texts_;  // a deque: the map's keys point into it
    std::unordered_map<std::string_view, Index> index_;
};

/// What a range without a name is called.
inline constexpr std::string_view kUnnamed = "(unnamed)";

/// As in dump.fbs.
enum class Fate : std::uint8_t { kRunning = 0, kExited = 1, kKilled = 2, kReplaced = 3 };
enum class SourceLevel : std::uint8_t {
    kAbsent = 0,
    kOff = 1,
    kFull = 2,
    kDegraded = 3,
    kNotInstrumented = 4
};
/// As in job.fbs.
enum class Verdict : std::uint8_t {
    kCaptured = 0,
    kNothingRecorded = 1,
    kExited = 2,
    kKilled = 3,
    kHung = 4,
    kRefused = 5,
    kUnreachable = 6,
    kNotInjected = 7
};

/// Ticks to the node's own clock, as in dump.fbs.
struct Calibration {
    std::uint64_t reference_ticks = 0;
    std::int64_t reference_ns = 0;
    double ticks_per_second = 1e9;
    double error_ppb = 0;
    std::uint8_t ticks_source = 0;  ///< fbs::TicksSource

    /// @return nanoseconds of the node's clock; never decreases with ticks; within 127 years of 1970, as all times are: their difference fits
    std::int64_t node_ns(std::uint64_t ticks) const;
};

/// The node's clock to the leader's, as in job.fbs.
struct ClockCorrection {
    std::int64_t reference_node_ns = 0;
    std::int64_t offset_ns = 0;
    double drift_ppb = 0;
    std::int64_t bound_ns = 0;

    std::int64_t leader_ns(std::int64_t node_ns) const;
};

/// What a capture cost the job on one node, as in dump.fbs.
struct Perturbation {
    std::uint64_t records = 0;
    std::uint64_t cost_ns = 0;
    std::uint64_t job_time_ns = 0;
    std::int64_t slowest_start_ns = -1;
    std::int64_t agent_cpu_ns = -1;
    bool known = false;  ///< the dump says so
};

/// One node's dump or, where its dump is missing, what the index says of it.
struct Node {
    std::string name;
    std::string host;
    std::string boot_id;
    std::string dump;  ///< path; empty: not loaded
    std::string error;
    std::string agent_version;
    std::uint64_t capture_id = 0;
    std::uint32_t options = 0;  ///< schema::CaptureOption: what was asked for
    Calibration calibration;
    ClockCorrection clock;   ///< from the index, whether applied or not
    bool has_clock = false;  ///< the index has this node
    bool complete = false;   ///< its dump has a footer
    std::uint64_t start_ticks = 0;
    std::uint64_t stop_ticks = 0;
    double record_cost_ns = 0;  ///< of one record, measured on this node
    Perturbation perturbation;
    std::uint64_t footer_records = 0;
    std::uint64_t unknown_records = 0;  ///< kinds that this reader doesn't know
};

struct SourceState {
    schema::SourceId id = schema::SourceId::kNone;
    SourceLevel level = SourceLevel::kAbsent;
    std::string reason;
};

/// What a process has of the iterations that its capture was asked for, as in dump.fbs. Events outside of [begin, end) are left out.
struct Iterations {
    std::string name;  ///< empty: none
    std::uint32_t asked = 0;
    std::uint32_t count = 0;
    std::uint64_t first = 0;
    std::uint64_t begin_ticks = 0;
    std::uint64_t end_ticks = 0;
    bool beside = false;
    bool operator==(const Iterations&) const = default;
};

struct Process {
    Index node = 0;
    std::uint32_t index = 0;  ///< in its node's dump
    std::uint64_t pid_namespace = 0;
    std::int32_t pid = 0;
    std::int32_t host_pid = 0;
    std::int32_t parent_pid = 0;
    std::uint64_t start_ticks = 0;
    std::int32_t rank = -1;
    std::string worker_name;
    std::int32_t worker_id = -1;  ///< the table's Node ID
    std::string executable;
    std::vector<std::string> command_line;
    std::vector<SourceState> sources;
    Fate fate = Fate::kRunning;
    bool ended = false;            ///< the dump says what became of it
    std::uint64_t end_ticks = 0;   ///< ProcessEnd's; 0: none
    std::uint64_t last_ticks = 0;  ///< the greatest time in its records
    std::int64_t last_evidence_ns = 0;
    std::vector<std::uint64_t> losses;
    std::uint64_t violations = 0;
    std::int64_t start_delay_ns = -1;
    std::optional<Iterations> iterations;  ///< none: all of it is shown
    std::vector<OpenCall> open_calls;      ///< at its end, or the capture's
    std::vector<Group> groups;
    bool has_verdict = false;  ///< the index has it
    Verdict verdict = Verdict::kCaptured;
    std::string reason;

    /// @return the command line, or the executable where it is unknown
    std::string command() const;
};

/// What one lane wrote: written = kept + outside + lost.
struct LaneAccount {
    std::uint64_t written = 0;
    std::uint64_t kept = 0;
    std::uint64_t outside = 0;
    std::uint64_t lost = 0;
    std::uint64_t first_lost_ticks = 0;
    std::uint64_t last_lost_ticks = 0;
    bool known = false;  ///< the dump's footer has it
};

/// One thread's lane (index and generation) in one process.
struct Lane {
    Index process = 0;
    std::uint32_t index = 0;
    std::uint32_t generation = 0;
    std::int32_t tid = 0;
    std::string thread_name;
    std::vector<Range> ranges;  ///< by begin, outer before inner
    std::uint64_t records = 0;  ///< read from the blocks, duplicates left out
    LaneAccount account;
};

/// What is wrong with an input that was loaded all the same.
struct Damage {
    std::string path;
    std::uint64_t offset = 0;  ///< the bytes before it are whole
    std::string text;          ///< action, object, values, cause, what to do
};

/// Sums over the whole job.
struct Totals {
    std::uint64_t records = 0;  ///< read from blocks
    std::uint64_t events =
        0;  ///< ranges, async ranges, halves, values, GPU work and calls; pairs count once
    std::uint64_t ranges = 0;
    std::uint64_t open = 0;        ///< events without an end, process alive at the capture's end
    std::uint64_t unfinished = 0;  ///< events without an end, process died
    // Of all lanes: written = kept + outside + lost.
    std::uint64_t written = 0;
    std::uint64_t outside = 0;
    std::uint64_t lost = 0;
    std::uint64_t passed_over = 0;  ///< records that no lane has seen, and those without times
    std::uint64_t untimed = 0;      ///< the GPU's records whose times CUPTI had lost: left out
    std::uint64_t outside_iterations = 0;  ///< events that were left out
    std::uint64_t duplicates = 0;          ///< records dropped because they had been read
    std::uint64_t unknown_records = 0;
    std::uint64_t ends_without_begin = 0;
    std::uint64_t joined_requests = 0;
    std::uint64_t joined_replies = 0;
    std::uint64_t orphans = 0;
    std::uint64_t cut = 0;
    std::uint64_t unjoined = 0;
    std::uint64_t calls_unfinished = 0;
};

struct Job {
    std::string name;
    std::string leader;
    std::uint64_t capture_id = 0;
    bool has_index = false;
    bool corrected = false;              ///< times are the leader's; else each node's own
    std::uint64_t ambiguous = 0;         ///< of the index
    std::uint64_t order_violations = 0;  ///< of the index
    Names names;
    std::vector<Attributes> attributes;  ///< each set once
    std::vector<Node> nodes;
    std::vector<Process> processes;
    std::vector<Lane> lanes;
    std::vector<AsyncRange> asyncs;
    std::vector<Half> halves;
    std::vector<Call> calls;
    std::vector<Serving> servings;   ///< by half, then begin
    std::vector<Value> values;       ///< by process; of each first the boundaries, by name and time
    std::vector<GpuCall> gpu_calls;  ///< by process, then begin
    std::vector<GpuWork> gpu_work;   ///< by process, then begin
    std::vector<GpuDevice> gpu_devices;  ///< by process and device
    std::vector<Damage> damage;          ///< empty: every input was whole
    Totals totals;

    const Process& process_of(const Lane& lane) const { return processes[lane.process]; }
    const Process& process_of_lane(Index lane) const { return processes[lanes[lane].process]; }
    /// @return the greatest bound of the nodes' clocks, 0 where there is one node or no index
    std::int64_t clock_bound_ns() const;
    /// @return how many there are, on all lanes
    std::uint64_t ranges() const;
};

}  // namespace ringside::viewer_export::model
