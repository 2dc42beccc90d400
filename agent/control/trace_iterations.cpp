// A trace by iterations: the leader asks its nodes how far their processes are, and ends the capture when nobody is waited for any more.
#include <algorithm>
#include <utility>

#include "agent/control/iteration_wait.hpp"
#include "agent/control/trace_run.hpp"

namespace ringside::agent {
namespace {

using schema::ErrorCode;

constexpr std::int64_t kBetweenLooksNs = 100 * schema::kNsPerMillisecond;
constexpr Milliseconds kAnswerLimit{2000};

}  // namespace

/// They would pass over what they don't know, and record everybody, or until somebody stops them.
void TraceRun::refuse_older_nodes() {
    for (NodeState& node : roster_.nodes()) {
        if (!node.taking_part || node.counts_iterations) continue;
        roster_.drop(node, {ErrorCode::kRefused,
                            "choose processes or count iterations on node '" + node.name +
                                "': its agent is older and can't; install the same version there"});
    }
}

fbs::IterationsReplyT TraceRun::ask_iterations() {
    fbs::IterationsRequestT question;
    question.capture_id = capture_id_;
    Round round;
    round.action = "ask for the iterations";
    round.request = [&](NodeState&, std::uint64_t id) { return pack(id, question); };
    round.reply = [](NodeState& node, fbs::MessageT& message) {
        if (const auto* reply = content_as<fbs::IterationsReplyT>(message))
            node.iterations = *reply;
    };
    // What it said last stands: its capture is worth more than its word on how far it is.
    round.may_fail = true;
    round.limit = kAnswerLimit;
    roster_.run(round);
    if (auto reply = own_.iterations(question)) roster_.own().iterations = *reply;
    fbs::IterationsReplyT all;
    for (NodeState& node : roster_.nodes()) {
        if (!node.taking_part) end_all(node.iterations);
        add_progress(all, node.iterations);
    }
    return all;
}

void TraceRun::await_iterations() {
    const std::int64_t deadline_ns =
        start_ns_.value + request_.timeout_ms * schema::kNsPerMillisecond;
    for (;;) {
        const fbs::IterationsReplyT all = ask_iterations();
        phase_text_ = iterations_text(all, request_.iterations);
        const std::int64_t now_ns = roster_.leader_now().value;
        if (iterations_over(all, now_ns - start_ns_.value) || !roster_.anybody()) break;
        if (now_ns >= deadline_ns) {
            until_ = "the timeout";
            break;
        }
        if (!roster_.wait_until({std::min(now_ns + kBetweenLooksNs, deadline_ns)})) {
            until_ = "the trace was ended";
            break;
        }
    }
    stop_ns_ = roster_.leader_now();
}

}  // namespace ringside::agent
