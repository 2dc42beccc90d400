// The part of a trace that ends it: the captures' stop, what becomes of their dumps, the job index and the reply.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include "agent/control/iteration_wait.hpp"
#include "agent/control/missing.hpp"
#include "agent/control/trace_result.hpp"
#include "agent/control/trace_run.hpp"
#include "agent/correlate/join.hpp"
#include "agent/dump/output_folder.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

/// To drain and write a large capture takes time; a node that is at it answers pings.
constexpr Milliseconds kStopLimit{300'000};

/// Where there can be no index: the calls are counted.
class NoIndex final : public CallSink {
public:
    void add(const fbs::Call&) override {}
};

}  // namespace

/// Of those whose captures go on, and of those that have stopped where their dumps are to be thrown away.
void TraceRun::stop(bool discard) {
    if (stop_ns_.value == 0) stop_ns_ = roster_.leader_now();
    discard = !request_.finish && (discard || start_ns_.value == 0);
    const auto is_meant = [discard](const NodeState& node) {
        return node.holding || (discard && node.stopped && !node.stopped->path.empty());
    };
    const auto order_for = [&](const NodeState& node) {
        fbs::StopRequestT order;
        order.capture_id = node.capture_id;
        order.stop_node_ns = roster_.node_time_of(node, stop_ns_).value;
        order.discard = discard;
        return order;
    };
    Round round;
    round.action = "stop the capture";
    round.limit = kStopLimit;
    round.request = [&](NodeState& node, std::uint64_t id) {
        return is_meant(node) ? pack(id, order_for(node)) : MessageBytes();
    };
    round.reply = [this](NodeState& node, fbs::MessageT& message) {
        if (auto* reply = content_as<fbs::StopReplyT>(message)) {
            node.stopped = std::move(*reply);
            node.holding = false;
            return;
        }
        roster_.drop(node,
                     {ErrorCode::kInput, "stop the capture: " + node.endpoint +
                                             " answered something else; is it of this version?"});
    };
    round.own = [&](NodeState& node) -> schema::Result<void> {
        if (!is_meant(node)) return {};
        auto reply = own_.stop(order_for(node));
        if (!reply) return reply.error();
        node.stopped = std::move(*reply);
        node.holding = false;
        return {};
    };
    roster_.run(round);
}

/// Asked for at whatever time before the join: those that have stopped by then are asked once more.
Error TraceRun::thrown_away() {
    const auto keeps = [](const NodeState& node) {
        const bool goes_on = node.holding && node.begun_by_ns.value != 0;
        return goes_on || (node.stopped && !node.stopped->path.empty());
    };
    if (std::any_of(roster_.nodes().begin(), roster_.nodes().end(), keeps)) stop(true);
    std::string kept;
    for (const NodeState& node : roster_.nodes()) {
        if (keeps(node)) kept += (kept.empty() ? "" : ", ") + node.name;
    }
    return {ErrorCode::kRefused,
            "trace " + name_ + ": cancelled as asked, " +
                (kept.empty() ? "nothing was kept"
                              : "but what was captured stays on " + kept +
                                    ", which did not answer when it was to be thrown away")};
}

/// Beside this node's own dump; where it recorded nothing itself and leads others, in a folder made for it.
schema::Result<std::unique_ptr<IndexWriter>> TraceRun::make_index() const {
    const NodeState& own = roster_.own();
    std::string name = name_;
    if (own.stopped && !own.stopped->path.empty())
        name = std::filesystem::path(own.stopped->path).parent_path().filename().string();
    auto folder = OutputFolder::open(own_.engine().options().output_root, name);
    if (!folder) return folder.error();
    return IndexWriter::create(folder->directory.get(), folder->path);
}

fbs::TraceReplyT TraceRun::conclude() {
    TraceResult result = make_result(roster_.nodes(), start_ns_, stop_ns_);
    say_missing_iterations(result.captures, request_.iterations_of, until_);
    auto index = make_index();
    NoIndex none;
    const JoinCounts joined =
        join(result.captures, {capture_id_, true}, index ? static_cast<CallSink&>(**index) : none);
    JobHeader header;
    header.job = own_.engine().options().job;
    header.leader = own_.engine().options().node;
    header.capture_id = capture_id_;
    const auto path = index ? (*index)->finish(header, result.captures, joined)
                            : schema::Result<std::string>(index.error());
    fbs::TraceReplyT reply = trace_reply(result, joined);
    add_missing(request_, reply);
    reply.capture_id = capture_id_;
    if (path) {
        reply.job_index = *path;
    } else {
        // Where the disk is full the dumps are told of all the same: who reads them joins them.
        std::string& error = reply.nodes.front()->error;
        error += (error.empty() ? "" : "; ") + path.error().message;
    }
    // With history the nodes begin at different times, as far back as each of them holds.
    reply.duration_ns = start_ns_.value != 0 && request_.history_ms == 0
                            ? stop_ns_.value - start_ns_.value
                            : result.duration_ns;
    return reply;
}

}  // namespace ringside::agent
