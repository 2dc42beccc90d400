#include "agent/control/node_service.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "agent/control/endpoint.hpp"
#include "agent/control/known_agents.hpp"
#include "schema/request_id.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

constexpr std::int64_t kFarthestAheadNs = 60 * schema::kNsPerSecond;
constexpr std::int64_t kFarthestBehindNs = 3600 * schema::kNsPerSecond;

/// Removes a dump that nobody wants, and its folder where that is empty now.
void discard(const std::string& path) {
    if (path.empty()) return;
    ::unlink(path.c_str());
    const std::size_t slash = path.rfind('/');
    if (slash != std::string::npos && slash > 0) ::rmdir(path.substr(0, slash).c_str());
}

/// So many boundaries a process are remembered.
schema::Result<void> check_iterations(const IterationWish& wish) {
    if (wish.count <= kMostIterations && wish.roundup >= 1 && wish.roundup <= kMostIterations)
        return {};
    return Error{ErrorCode::kUsage,
                 "prepare a capture of " + std::to_string(wish.count) +
                     " iterations, round number " + std::to_string(wish.roundup) + ": up to " +
                     std::to_string(kMostIterations) + " of both, the second from 1 on"};
}

/// Of a capture that is over: nobody gets any further.
IterationProgress progress_at_end(const CaptureReport& report) {
    IterationProgress progress;
    const std::int64_t instant_ns =
        report.calibration.node_ns({report.start_ticks}).value + report.history_ns;
    for (const ProcessReport& process : report.processes) {
        const auto& iterations = process.iterations;
        if (!iterations || iterations->beside) continue;
        if (iterations->count < iterations->asked) {
            ++progress.ended;
            continue;
        }
        ++progress.done;
        const std::int64_t took =
            report.calibration.node_ns({iterations->end_ticks}).value - instant_ns;
        progress.slowest_ns = std::max(progress.slowest_ns, took);
    }
    return progress;
}

}  // namespace

std::string capture_name(std::uint64_t capture_id) {
    char hex[17] = {};
    schema::write_hex(hex, capture_id, 16);
    return std::string("capture-") + hex;
}

NodeService::NodeService(Engine& engine, AgentIdentity identity)
    : engine_(engine), identity_(std::move(identity)) {}

std::vector<Key> NodeService::keys() const {
    const std::lock_guard lock(mutex_);
    return keys_;
}

void NodeService::take_key(const Key& key) {
    const std::lock_guard lock(mutex_);
    keys_.insert(keys_.begin(), key);
}

void NodeService::take_note(const NotedAgent& note) {
    const std::lock_guard lock(mutex_);
    note_ = note;
}

schema::Result<fbs::PeersReplyT> NodeService::peers(const fbs::PeersRequestT& request) const {
    NotedAgent own{"", engine_.options().node, ""};
    {
        const std::lock_guard lock(mutex_);
        if (!note_.member.empty()) own = note_;
    }
    return tell_known(request.job, own);
}

schema::Result<fbs::PrepareReplyT> NodeService::prepare(const fbs::PrepareRequestT& request) {
    if (request.capture_id == 0)
        return Error{ErrorCode::kUsage, "prepare a capture: its id is 0; choose another"};
    CaptureRequest wanted = capture_request(request);
    if (wanted.name.empty()) wanted.name = capture_name(wanted.id);
    if (auto checked = check_name("the capture's name", wanted.name); !checked)
        return checked.error();
    if (auto checked = check_iterations(wanted.iterations); !checked) return checked.error();
    auto report = engine_.prepare(wanted);
    if (!report) return report.error();
    return prepare_reply(engine_, identity_, *report);
}

schema::Result<fbs::IterationsReplyT> NodeService::iterations(
    const fbs::IterationsRequestT& request) {
    auto progress = engine_.iterations(request.capture_id);
    if (progress) return iterations_reply(*progress);
    // It has ended here before its leader asked for its end.
    const std::lock_guard lock(mutex_);
    if (!last_ || last_->report.id != request.capture_id) return progress.error();
    return iterations_reply(progress_at_end(last_->report));
}

/// The engine waits for the instant and reckons with it: nobody may make it wait for a year, nor overflow.
schema::Result<void> NodeService::check_instant(const char* action, std::int64_t node_ns) const {
    const std::int64_t now = engine_.node_now().value;
    if (node_ns <= now + kFarthestAheadNs && node_ns >= now - kFarthestBehindNs) return {};
    return Error{ErrorCode::kUsage,
                 std::string(action) + ": the instant " + std::to_string(node_ns) +
                     " lies more than 60 s ahead of node time " + std::to_string(now) +
                     ", or an hour behind it; measure the clock again"};
}

schema::Result<void> NodeService::begin(const fbs::BeginRequestT& request) {
    if (auto checked = check_instant("begin the capture", request.start_node_ns); !checked)
        return checked;
    return engine_.begin(request.capture_id, {request.start_node_ns});
}

bool NodeService::is_last(std::uint64_t capture_id) const {
    const std::lock_guard lock(mutex_);
    return last_ && last_->report.id == capture_id;
}

/// Under `stopping_`.
schema::Result<void> NodeService::end(const fbs::StopRequestT& request, std::string early) {
    auto report = engine_.stop(request.capture_id, {request.stop_node_ns});
    if (!report) return report.error();
    Halves halves = engine_.halves(request.capture_id);
    if (!halves) halves = std::make_shared<const std::vector<Half>>();
    const std::lock_guard lock(mutex_);
    last_ = Ended{std::move(*report), {request.stop_node_ns}, std::move(early), std::move(halves)};
    if (from_start_ == request.capture_id) from_start_ = 0;
    return {};
}

schema::Result<void> NodeService::end_early(std::uint64_t capture_id, std::string why) {
    const std::lock_guard stopping(stopping_);
    if (is_last(capture_id)) return {};
    fbs::StopRequestT order;
    order.capture_id = capture_id;
    order.stop_node_ns = engine_.node_now().value;
    return end(order, std::move(why));
}

schema::Result<fbs::StopReplyT> NodeService::stop(const fbs::StopRequestT& request) {
    if (auto checked = check_instant("stop the capture", request.stop_node_ns); !checked)
        return checked.error();
    const std::lock_guard stopping(stopping_);
    if (!is_last(request.capture_id)) {
        if (auto ended = end(request, ""); !ended) return ended.error();
    }
    const Halves halves = halves_of(request.capture_id);
    fbs::StopReplyT reply = told(request);
    reply.halves_count = halves->size();
    return reply;
}

/// What has become of the last capture, to who asks for its end.
fbs::StopReplyT NodeService::told(const fbs::StopRequestT& request) {
    const std::lock_guard lock(mutex_);
    CaptureReport& report = last_->report;
    if (request.discard) discard(std::exchange(report.path, {}));
    fbs::StopReplyT reply = stop_reply(engine_, identity_, report, 0);
    const std::int64_t early_ns = request.stop_node_ns - last_->at_node_ns.value;
    if (last_->early.empty() || early_ns <= 0) return reply;
    reply.complete = false;
    reply.early_ns = early_ns;
    reply.early_cause = last_->early;
    // In words, too: a leader of before these fields shows them.
    reply.error += (reply.error.empty() ? "" : "; ") + early_text(early_ns, last_->early);
    return reply;
}

Halves NodeService::halves_of(std::uint64_t capture_id) const {
    const std::lock_guard lock(mutex_);
    return last_ && last_->report.id == capture_id ? last_->halves : nullptr;
}

schema::Result<MessageBytes> NodeService::halves(std::uint64_t id,
                                                 const fbs::HalvesRequestT& request) const {
    const Halves halves = halves_of(request.capture_id);
    if (!halves) {
        return Error{
            ErrorCode::kNothingMatched,
            "read the halves of " + capture_name(request.capture_id) +
                ": it is not the capture that this agent stopped last; ask right after the stop"};
    }
    return pack_halves(id, *halves, request.first, request.most);
}

std::vector<Half> NodeService::all_halves(std::uint64_t capture_id) const {
    const Halves halves = halves_of(capture_id);
    return halves ? *halves : std::vector<Half>();
}

schema::Result<fbs::ArmReplyT> NodeService::arm(const fbs::ArmRequestT& request) {
    if (request.keep_ms == 0)
        return Error{ErrorCode::kUsage, "arm: a window of 0 ms keeps nothing; give another --keep"};
    auto report = engine_.arm(arm_request(request));
    if (!report) return report.error();
    return arm_reply(engine_, identity_, *report);
}

schema::Result<fbs::DisarmReplyT> NodeService::disarm() {
    auto report = engine_.disarm();
    if (!report) return report.error();
    return disarm_reply(engine_, identity_, *report);
}

schema::Result<void> NodeService::capture_from_start(CaptureRequest request) {
    if (request.name.empty()) request.name = capture_name(request.id);
    if (auto checked = check_name("--name", request.name); !checked) return checked;
    if (auto started = engine_.capture_from_start(request); !started) return started;
    const std::lock_guard lock(mutex_);
    from_start_ = request.id;
    return {};
}

std::uint64_t NodeService::from_start_id() const {
    const std::lock_guard lock(mutex_);
    return from_start_;
}

}  // namespace ringside::agent
