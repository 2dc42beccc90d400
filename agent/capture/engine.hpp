// The seam between the agent's two halves: control/ asks, the engine does. One capture at a time: asked, attaching, running, draining,
// written. The engine owns the directory, the drain thread and the dump; control/ owns sockets, peers, clocks between nodes, the join.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/capture/selection.hpp"
#include "schema/ids.hpp"
#include "schema/record.hpp"
#include "schema/request_id.hpp"
#include "schema/result.hpp"
#include "schema/segment.hpp"
#include "schema/units.hpp"

namespace ringside::agent {

using schema::Nanoseconds;
using schema::Result;
using schema::Ticks;

/// What became of a process.
enum class Fate : std::uint8_t { kRunning = 0, kExited = 1, kKilled = 2, kReplaced = 3 };
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

/// node_ns = reference_ns + (ticks - reference_ticks) * 1e9 / ticks_per_second. A test skew is in it, never in ticks.
struct Calibration {
    std::uint64_t reference_ticks = 0;
    std::int64_t reference_ns = 0;
    double ticks_per_second = 1e9;
    double error_ppb = 0;
    schema::TicksSource source = schema::TicksSource::kTsc;

    Nanoseconds node_ns(Ticks ticks) const;
    Ticks ticks_at(Nanoseconds node_ns) const;
};

/// How much memory the shims may make real.
struct MemoryOptions {
    std::uint64_t node_budget_bytes =
        0;  ///< 0: 1/8 of the file system, never beyond half of what is free
    std::uint64_t process_budget_bytes = 0;                       ///< 0: the node's
    std::uint32_t first_lane_kib = schema::kDefaultFirstLaneKib;  ///< a thread's first ring
    std::uint32_t most_lane_kib = schema::kDefaultMostLaneKib;    ///< its largest
};

struct RecoverOptions {
    std::uint64_t id = 0;
    std::string name;  ///< of the dump's folder beneath the output root
};

struct EngineOptions {
    std::string root;         ///< holds job directories
    std::string job;          ///< the directory beneath it
    std::string output_root;  ///< dumps are written beneath it only
    std::string node;
    MemoryOptions memory{};
    std::int64_t skew_offset_ns = 0;  ///< tests only
    double skew_drift_ppb = 0;        ///< tests only
    /// Who opens it only ends what agents that died have left: a capture that can't be ended is an error, and nothing is drained then; a window
    /// becomes a capture of this id and name. Id 0: it is an agent's, which leaves a window as it is.
    RecoverOptions recover{};
    bool standby = false;  ///< where another agent holds the directory: wait until it has ended
};

/// The iterations that a capture is asked for, of each process. count 0: none.
struct IterationWish {
    std::uint32_t count = 0;
    std::uint32_t roundup = 1;  ///< the first begins at a boundary whose number is a multiple of it
    std::string
        name;  ///< of boundaries, else of ranges; empty: boundaries of the name that comes first
};

/// What a process has of them; as in dump.fbs.
struct IterationReport {
    static constexpr std::uint64_t kNoEnd = ~0ull;
    std::string name;
    std::uint32_t asked = 0;
    std::uint32_t count = 0;
    std::uint64_t first = 0;
    std::uint64_t begin_ticks = 0;
    std::uint64_t end_ticks = kNoEnd;
    bool beside = false;
};

/// How far the processes of a capture are with them.
struct IterationProgress {
    std::uint32_t done = 0;
    std::uint32_t under_way = 0;
    std::uint32_t none = 0;       ///< might have some, and have shown no boundary yet
    std::uint32_t ended = 0;      ///< before they were done
    std::uint32_t least = 0;      ///< whole ones of the slowest that is under way
    std::int64_t slowest_ns = 0;  ///< from the instant to the end of the slowest that is done
};

struct CaptureRequest {
    std::uint64_t id = 0;
    Selection selection;
    std::uint32_t source_mask = 0xffffffffu;
    std::uint32_t options = 0;
    std::uint64_t max_bytes = 0;  ///< 0: no bound
    bool compress = false;        ///< the dump's blocks
    std::string name;   ///< of the dump's folder beneath the output root; relative, no ".."
    std::string asker;  ///< who wants it; empty: nobody has said
    Nanoseconds attach_timeout{2'000'000'000};
    Nanoseconds history{
        0};  ///< what is wanted of the time before the instant; needs an armed window
    IterationWish iterations{};
};

struct ArmRequest {
    Nanoseconds keep{10'000'000'000};
    std::uint64_t max_bytes = 0;  ///< 0: 256 MiB, or half of what is free where that is less
    std::vector<int> pids;        ///< none: all
    std::uint32_t source_mask = 0xffffffffu;
    std::uint32_t options = 0;
    Nanoseconds attach_timeout{2'000'000'000};
};

/// An RPC half as the join wants it. begin and end in the node's ticks.
struct Half {
    std::uint32_t process = 0;
    schema::LaneId lane;
    std::uint64_t position = 0;
    bool server = false;
    schema::RequestId id;
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

/// They are many: one copy, for all who ask.
using Halves = std::shared_ptr<const std::vector<Half>>;

struct SourceReport {
    schema::SourceId id;
    schema::SourceLevel level;
    std::string reason;
};

struct ProcessReport {
    std::uint32_t index = 0;
    schema::SegmentId segment;
    int pid = 0;       ///< in its own namespace
    int host_pid = 0;  ///< as the agent sees it; 0: unknown
    int parent_pid = 0;
    int rank = -1;
    std::string executable;
    std::vector<std::string> command_line;
    std::string worker_name;  ///< the last one; empty: none
    int worker_id = -1;
    std::vector<std::string> workers;  ///< every worker name that its halves carried
    std::vector<SourceReport> sources;
    std::uint32_t lanes = 0;
    std::uint64_t events = 0;
    std::uint64_t lost = 0;   ///< records that lanes dropped, and those that hooks passed over
    std::uint64_t bytes = 0;  ///< of its blocks in the dump, before compression
    std::uint64_t iterations_seen =
        0;  ///< whole ones of the name that came first, in the running capture or window
    std::int64_t iteration_ns = -1;  ///< the last of them; -1: none yet
    bool attached = false;
    Fate fate = Fate::kRunning;
    std::uint64_t end_ticks = 0;
    Verdict verdict = Verdict::kCaptured;
    std::string reason;
    std::int64_t start_delay_ns = -1;
    std::optional<IterationReport> iterations;  ///< none: none were asked for
};

struct PrepareReport {
    std::uint32_t processes = 0;
    std::uint32_t attached = 0;
    std::int64_t slowest_attach_ns = 0;
};

/// What an armed agent's window is to hold, holds, and holds no more.
struct WindowReport {
    ArmRequest asked;
    std::int64_t armed_ns = 0;  ///< since when
    std::int64_t holds_ns = 0;  ///< back from now: whatever began later is held
    std::uint64_t bytes = 0;
    std::uint64_t records = 0;
    std::uint32_t pieces = 0;
    std::uint64_t aged_records = 0;
    Nanoseconds aged_until{0};  ///< node time; 0: nothing has aged out
    std::uint64_t lost = 0;     ///< by lanes, in the time that is held
    std::string error;          ///< why something could not be kept
};

struct ArmReport {
    bool changed = false;  ///< it was armed already: the bounds are new, what it holds is not
    PrepareReport attach;
    WindowReport window;
};

struct DisarmReport {
    std::optional<WindowReport> window;  ///< as it was; none: it was not armed
    std::size_t left_pieces = 0;         ///< those of a dead agent that were removed
};

/// What a capture cost the job on this node; as in dump.fbs.
struct Perturbation {
    std::uint64_t records = 0;
    std::uint64_t cost_ns = 0;
    std::uint64_t job_time_ns = 0;
    std::int64_t slowest_start_ns = -1;
    std::int64_t agent_cpu_ns = -1;
};

struct CaptureReport {
    std::uint64_t id = 0;
    std::string path;  ///< of the dump, absolute; exists and verifies
    std::uint64_t bytes = 0;
    std::uint64_t records = 0;
    std::uint64_t lost = 0;
    bool complete = false;  ///< false: max_bytes reached or a write failed; error says
    std::string error;
    Calibration calibration;
    std::uint64_t start_ticks = 0;
    std::uint64_t stop_ticks = 0;
    double record_cost_ns = 0;
    Perturbation perturbation;
    std::vector<ProcessReport> processes;
    std::int64_t history_ns = 0;  ///< from start_ticks to the agreed instant
    std::string window_note;      ///< where that is less than what was asked: why
    std::uint32_t left_out = 0;   ///< processes that were meant, and beyond Selection::limit
};

/// What captures and windows have kept since the agent started: only ever more.
struct Totals {
    std::uint64_t events = 0;
    std::uint64_t lost = 0;
    std::uint64_t bytes = 0;       ///< of blocks, before compression
    std::uint64_t iterations = 0;  ///< of all processes
};

struct EngineStatus {
    bool capturing = false;
    std::uint64_t capture_id = 0;
    std::string asker;  ///< of the capture that runs
    std::uint32_t processes = 0;
    std::uint64_t events = 0, lost = 0, bytes = 0;
    Totals totals;
    std::int64_t iteration_ns =
        -1;  ///< the last one of the slowest process that lives; -1: none yet, or nothing is recorded
    double record_cost_ns = 0;
    std::string directory;
    std::optional<WindowReport> window;  ///< none: not armed
    std::size_t left_pieces = 0;         ///< of the window of an agent that died
    std::uint64_t left_bytes = 0;
    std::string notice;  ///< what has happened to the directory; empty: nothing
    std::string
        recovered;  ///< what was found of an agent that died here, and what became of it; empty: nothing
    std::string found_dump;  ///< of an agent that had ended its capture when it died
};

/// @thread every member is thread-safe; the drain thread runs inside
class Engine {
public:
    /// Takes the job directory's lock, makes or adopts the control page, calibrates the ticks (0.2 s), starts the drain thread. A capture
    /// that an agent which died has left there is ended first: its dump is whole, and has its name.
    /// @errors Refused: another agent holds the directory (the message names it); Usage: the directory can't be made or written
    static Result<std::unique_ptr<Engine>> open(const EngineOptions& options);
    virtual ~Engine() = default;

    /// Turns the capture word on and waits until every live process has attached or the timeout is over. What is recorded until begin()
    /// is dropped. A request with the id of the running capture is answered again. While a window is armed the capture is cut out of it,
    /// and may begin before its instant.
    /// @errors Refused: a capture with another id runs, history is wanted and no window armed, or the window was not armed for what is
    ///         asked; NothingMatched: nobody who is meant is here
    virtual Result<PrepareReport> prepare(const CaptureRequest& request) = 0;
    /// The agreed instant, node time; may lie in the future.
    virtual Result<void> begin(std::uint64_t capture_id, Nanoseconds start_node_ns) = 0;
    /// A capture from the first instruction: word on at once, no start instant. For --capture-from-start and `ringside run`.
    virtual Result<void> capture_from_start(const CaptureRequest& request) = 0;
    /// How far the iterations of the running capture are.
    /// @errors NothingMatched: that capture does not run
    virtual Result<IterationProgress> iterations(std::uint64_t capture_id) const = 0;
    /// Waits for the instant, turns the word off, drains every lane, writes the footer, renames the dump to its final name.
    virtual Result<CaptureReport> stop(std::uint64_t capture_id, Nanoseconds stop_node_ns) = 0;
    /// The halves of the capture last stopped. @return null: that is another one
    virtual Halves halves(std::uint64_t capture_id) const = 0;

    /// Keeps a window from now on. Armed already: changes its bounds.
    /// @errors Refused: a capture runs, or other processes, sources or options are asked for than it was armed with; Usage: no room
    virtual Result<ArmReport> arm(const ArmRequest& request) = 0;
    /// Ends the window and removes what it held, what a dead agent's held too.
    /// @errors Refused: a capture is being cut out of it
    virtual Result<DisarmReport> disarm() = 0;

    /// True once at least one process was seen in the running capture and all that were seen have ended.
    virtual bool all_ended() const = 0;

    /// The capture that open() found and ended.
    virtual std::optional<CaptureReport> recovered() const = 0;
    /// Makes a dump of what dead processes left in their segments and no agent took.
    /// @return nothing: they left nothing
    /// @errors Refused: a capture runs; as for the dump of any capture
    virtual Result<std::optional<CaptureReport>> take_left_behind(
        const CaptureRequest& request) = 0;
    /// Segments of dead processes that were removed so far.
    virtual std::uint64_t removed_segments() const = 0;

    /// From now on; lanes that are there stay as they are.
    virtual void set_memory(const MemoryOptions& memory) = 0;

    virtual EngineStatus status() const = 0;
    /// Those that are here now: who has come since the drain thread last looked is found.
    virtual std::vector<ProcessReport> processes() = 0;
    virtual const Calibration& calibration() const = 0;
    /// The node's clock now, skew included.
    virtual Nanoseconds node_now() const = 0;
    virtual const EngineOptions& options() const = 0;
};

}  // namespace ringside::agent
