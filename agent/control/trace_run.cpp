#include "agent/control/trace_run.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "agent/control/endpoint.hpp"
#include "agent/control/iteration_wait.hpp"
#include "schema/frame.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;
using schema::kNsPerMillisecond;
using Clock = std::chrono::steady_clock;

constexpr Milliseconds kBetweenProgress{500};
/// Stop requests leave this much before the instant that they name, begin requests at least.
constexpr std::int64_t kAheadNs = 20 * kNsPerMillisecond;
constexpr std::int64_t kAheadForEachNs = 50'000;  ///< and this for each node: one after the other
constexpr Milliseconds kAnswerLimit{10'000};
constexpr std::uint32_t kAttachTimeoutMs = 2000;
/// Before a start that was asked for, to measure clocks and attach; so long at most is waited for one.
constexpr std::int64_t kBeforeStartNs = 3 * schema::kNsPerSecond;
constexpr std::int64_t kFarthestStartNs = 3660 * schema::kNsPerSecond;

}  // namespace

TraceRun::TraceRun(NodeService& own, zmq::context_t& context, const fbs::TraceRequestT& request,
                   std::uint64_t capture_id, Cancel& cancel, Tell tell)
    : own_(own),
      request_(request),
      capture_id_(capture_id),
      name_(request.name.empty() ? capture_name(capture_id) : request.name),
      cancel_(cancel),
      tell_(std::move(tell)),
      roster_(
          own, context, [this] { tell_progress(); }, cancel.event()) {}

schema::Result<fbs::TraceReplyT> TraceRun::lead() {
    if (auto checked = check_request(); !checked) return checked.error();
    // Those captures are not this trace's to throw away.
    if (request_.finish) cancel_.keep_now();
    if (auto waited = wait_for_start(); !waited) return waited.error();
    enter(fbs::Phase::Measuring, "measuring the nodes' clocks");
    timed_until_ = Clock::now();
    roster_.meet(request_.peers, {request_.relay_beyond, request_.nodes_a_relay, request_.asker});
    took("meet");
    roster_.ping_all(&NodeState::before);
    took("ping");
    if (request_.finish) {
        if (auto found = find_running(); !found) return found.error();
    } else {
        if (auto prepared = prepare(); !prepared) {
            stop(true);
            return prepared.error();
        }
        took("prepare");
        begin();
        took("begin");
        capture();
        took("capture");
    }
    enter(fbs::Phase::Draining, "draining and writing");
    stop(cancel_.discard());
    took("stop");
    if (cancel_.discard() && !request_.finish) return thrown_away();
    roster_.ping_all(&NodeState::after);
    took("ping after");
    enter(fbs::Phase::Joining, "joining the nodes' calls");
    fetch_halves();
    took("halves");
    if (!cancel_.keep_now() && !request_.finish) return thrown_away();
    auto reply = conclude();
    took("join");
    say_times();
    return reply;
}

void TraceRun::took(const char* phase) {
    const SteadyTime now = Clock::now();
    times_.push_back({phase, std::chrono::nanoseconds(now - timed_until_).count()});
    timed_until_ = now;
}

void TraceRun::say_times() const {
    std::string text;
    for (const PhaseTime& time : times_)
        text += std::string(text.empty() ? "" : ", ") + time.phase + " " +
                std::to_string(time.ns / kNsPerMillisecond) + " ms";
    spdlog::info("led trace {} over {} nodes: {}", name_, roster_.nodes().size(), text);
}

schema::Result<void> TraceRun::check_request() const {
    if (auto checked = check_name("the capture's name", name_); !checked) return checked;
    if (auto checked = check_free(); !checked) return checked;
    if (request_.iterations != 0 && (request_.finish || request_.history_ms != 0)) {
        return Error{ErrorCode::kUsage,
                     "trace " + name_ +
                         ": iterations begin after now; ask for them without history or finish"};
    }
    for (const std::string& peer : request_.peers) {
        if (auto checked = check_endpoint(peer); !checked) return checked;
        if (is_tcp(peer) && own_.keys().empty()) return key_missing(peer);
    }
    return {};
}

/// Before anybody records: of an index there is one in a folder, and it is not written over.
schema::Result<void> TraceRun::check_free() const {
    const std::string path =
        own_.engine().options().output_root + "/" + name_ + "/" + schema::kJobFileName;
    std::error_code error;
    if (request_.finish || !std::filesystem::exists(std::filesystem::symlink_status(path, error)))
        return {};
    return Error{ErrorCode::kUsage, "trace " + name_ + ": " + path +
                                        " is there already; give another --name, or move it away"};
}

/// Nodes take no instant that is far ahead, and need not record until then.
schema::Result<void> TraceRun::wait_for_start() {
    const std::int64_t start = request_.start_time_ns;
    if (start == 0) return {};
    waits_from_ = roster_.leader_now();
    const std::int64_t ahead = start - waits_from_.value;
    if (ahead <= 0 || ahead > kFarthestStartNs) {
        return Error{ErrorCode::kUsage, "trace " + name_ + ": by the clock of node " +
                                            own_.engine().options().node + " its start is " +
                                            (ahead <= 0 ? "past by " : "ahead by ") +
                                            std::to_string(std::abs(ahead) / kNsPerMillisecond) +
                                            " ms; name one within the next hour"};
    }
    enter(fbs::Phase::Waiting, "waiting for the start");
    if (roster_.wait_until({start - kBeforeStartNs})) return {};
    return Error{ErrorCode::kRefused, "trace " + name_ + ": cancelled before it began"};
}

void TraceRun::enter(fbs::Phase phase, std::string text) {
    phase_ = phase;
    phase_text_ = std::move(text);
    last_told_ = {};
    tell_progress();
}

void TraceRun::tell_progress() {
    const SteadyTime now = Clock::now();
    if (now - last_told_ < kBetweenProgress) return;
    last_told_ = now;
    fbs::ProgressT progress;
    progress.capture_id = capture_id_;
    progress.phase = phase_;
    progress.text = phase_text_;
    if (!request_.finish)
        progress.total_ms = request_.iterations != 0 ? request_.timeout_ms : request_.duration_ms;
    if (phase_ == fbs::Phase::Waiting) {
        const auto ms = [&](std::int64_t until) {
            return static_cast<std::uint32_t>((until - waits_from_.value) / kNsPerMillisecond);
        };
        progress.total_ms = ms(request_.start_time_ns);
        progress.elapsed_ms = ms(roster_.leader_now().value);
    }
    if (start_ns_.value != 0) {
        const std::int64_t run = (roster_.leader_now().value - start_ns_.value) / kNsPerMillisecond;
        progress.elapsed_ms =
            static_cast<std::uint32_t>(std::clamp<std::int64_t>(run, 0, progress.total_ms));
    }
    tell_(std::move(progress));
}

schema::Result<void> TraceRun::prepare() {
    enter(fbs::Phase::Attaching, "attaching");
    if (request_.iterations != 0 || !request_.ranks.empty() || !request_.executables.empty() ||
        request_.limit != 0)
        refuse_older_nodes();
    fbs::PrepareRequestT wanted;
    wanted.capture_id = capture_id_;
    wanted.pids = request_.pids;
    wanted.ranks = request_.ranks;
    wanted.executables = request_.executables;
    wanted.limit = request_.limit;
    wanted.source_mask = request_.source_mask;
    wanted.options = request_.options;
    wanted.max_bytes = request_.max_bytes;
    wanted.compress = request_.compress;
    wanted.name = name_;
    wanted.asker = request_.asker;
    wanted.attach_timeout_ms = kAttachTimeoutMs;
    wanted.history_ms = request_.history_ms;
    wanted.iterations = request_.iterations;
    wanted.start_roundup = request_.start_roundup;
    wanted.iterations_of = request_.iterations_of;
    Round round;
    round.action = "prepare the capture";
    round.request = [&](NodeState& node, std::uint64_t id) {
        node.holding = true;
        node.capture_id = capture_id_;
        return pack(id, wanted);
    };
    round.reply = [](NodeState&, fbs::MessageT&) {};
    round.own = [&](NodeState& node) -> schema::Result<void> {
        auto prepared = own_.prepare(wanted);
        node.holding = static_cast<bool>(prepared);
        node.capture_id = capture_id_;
        if (!prepared) return prepared.error();
        return {};
    };
    round.limit = Milliseconds(kAttachTimeoutMs) + kAnswerLimit;
    roster_.run(round);
    const NodeState& own = roster_.own();
    // A capture of somebody else's runs here: this trace must not go on without its leader's node.
    if (!own.taking_part && own.error.code != ErrorCode::kNothingMatched) return own.error;
    bool anybody = false;
    for (NodeState& node : roster_.nodes()) {
        anybody |= node.taking_part;
        node.not_meant = node.error.code == ErrorCode::kNothingMatched;
    }
    if (anybody) return {};
    return own.error;
}

std::int64_t TraceRun::ahead_ns() const {
    return kAheadNs + static_cast<std::int64_t>(roster_.nodes().size()) * kAheadForEachNs;
}

void TraceRun::begin() {
    start_ns_ = {request_.start_time_ns != 0
                     ? request_.start_time_ns
                     : roster_.leader_now().value + ahead_ns() + 2 * roster_.worst_rtt_ns()};
    Round round;
    round.action = "begin the capture";
    round.limit = kAnswerLimit;
    round.request = [&](NodeState& node, std::uint64_t id) {
        fbs::BeginRequestT order;
        order.capture_id = capture_id_;
        order.start_node_ns = roster_.node_time_of(node, start_ns_).value;
        return pack(id, order);
    };
    round.reply = [this](NodeState& node, fbs::MessageT&) {
        node.begun_by_ns = roster_.leader_now();
    };
    round.own = [&](NodeState& node) {
        fbs::BeginRequestT order;
        order.capture_id = capture_id_;
        order.start_node_ns = start_ns_.value;
        auto begun = own_.begin(order);
        node.begun_by_ns = roster_.leader_now();
        return begun;
    };
    roster_.run(round);
}

void TraceRun::capture() {
    std::int64_t bound = 0;
    for (const NodeState& node : roster_.nodes()) {
        if (node.taking_part) bound = std::max(bound, node.rough.bound_ns);
    }
    const bool on = roster_.wait_until({start_ns_.value + bound});
    if (on) enter(fbs::Phase::Capturing, "capturing");
    if (on && request_.iterations != 0) return await_iterations();
    stop_ns_ = {start_ns_.value + request_.duration_ms * kNsPerMillisecond};
    const bool whole = on && roster_.wait_until({stop_ns_.value - ahead_ns()});
    if (!whole) stop_ns_ = {std::max(roster_.leader_now().value + kAheadNs / 4, start_ns_.value)};
}

/// The captures that a finish ends: whatever runs on each node.
schema::Result<void> TraceRun::find_running() {
    for (NodeState& node : roster_.nodes()) {
        if (!node.taking_part) continue;
        node.holding = node.capturing;
        if (node.capturing) continue;
        roster_.drop(node, {ErrorCode::kNothingMatched,
                            "finish the capture on node '" + node.name +
                                "': none runs there; start its agent with --capture-from-start"});
    }
    const NodeState& own = roster_.own();
    if (!own.taking_part) return own.error;
    capture_id_ = own.capture_id;
    stop_ns_ = {roster_.leader_now().value + kAheadNs / 4};
    return {};
}

}  // namespace ringside::agent
