// One trace, led by this agent, from its request to its reply:
//
//   meet -> ping -> prepare -> agree on an instant, begin -> wait -> stop -> ping -> halves -> join -> job index -> reply
//
// It waits for a time, or until the nodes say that their processes have had their iterations (trace_iterations.cpp).
//
// Everything is done to all nodes at once; a node that fails takes no further part and appears in the reply with its error. With
// `finish` the captures are running already: it starts at stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <zmq.hpp>

#include "agent/control/messages.hpp"
#include "agent/control/node_service.hpp"
#include "agent/control/outbox.hpp"
#include "agent/control/roster.hpp"
#include "agent/correlate/job_writer.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

/// How another thread ends a trace before its time.
/// @thread thread-safe
class Cancel {
public:
    /// @return false where it is to be thrown away, and is kept already; it ends all the same
    bool ask(bool keep) {
        const bool late = !keep && !decide(kDiscard);
        times_.fetch_add(1, std::memory_order_relaxed);
        event_.raise();
        return !late;
    }
    /// From here on it is kept. @return false where it has been asked to be thrown away
    bool keep_now() { return decide(kKeep); }
    const Event& event() const { return event_; }
    bool asked() const { return event_.raised(); }
    /// How often it was asked for: what began after the first time goes on until the next.
    unsigned times() const { return times_.load(std::memory_order_relaxed); }
    bool discard() const { return what_.load(std::memory_order_relaxed) == kDiscard; }

private:
    enum What : std::uint8_t { kOpen, kKeep, kDiscard };
    /// @return whether that is what becomes of it
    bool decide(What what) {
        What open = kOpen;
        return what_.compare_exchange_strong(open, what, std::memory_order_relaxed) || open == what;
    }

    Event event_;
    std::atomic<What> what_{kOpen};
    std::atomic<unsigned> times_{0};
};

/// @thread one: its own
class TraceRun {
public:
    using Tell = std::function<void(fbs::ProgressT)>;

    TraceRun(NodeService& own, zmq::context_t& context, const fbs::TraceRequestT& request,
             std::uint64_t capture_id, Cancel& cancel, Tell tell);

    /// @errors Refused: a capture runs here already, or the trace was cancelled; NothingMatched: none of the pids is on any node;
    ///         Usage: also a start that is past or too far; Internal: as their messages say
    schema::Result<fbs::TraceReplyT> run() {
        auto reply = lead();
        roster_.leave();
        return reply;
    }

    /// What took how long: meet, ping, prepare, begin, capture, stop, ping, halves, join.
    struct PhaseTime {
        const char* phase;
        std::int64_t ns;
    };
    const std::vector<PhaseTime>& times() const { return times_; }
    const std::vector<NodeState>& nodes() const { return roster_.nodes(); }

private:
    schema::Result<fbs::TraceReplyT> lead();
    schema::Result<void> check_request() const;
    schema::Result<void> check_free() const;
    schema::Result<void> wait_for_start();
    schema::Result<void> prepare();
    std::int64_t ahead_ns() const;
    void begin();
    void capture();
    void refuse_older_nodes();
    void await_iterations();
    fbs::IterationsReplyT ask_iterations();
    schema::Result<void> find_running();
    void stop(bool discard);
    schema::Error thrown_away();
    void fetch_halves();
    fbs::TraceReplyT conclude();
    void give_up_halves();
    schema::Result<std::unique_ptr<IndexWriter>> make_index() const;
    void took(const char* phase);
    void say_times() const;
    void enter(fbs::Phase phase, std::string text);
    void tell_progress();

    NodeService& own_;
    const fbs::TraceRequestT& request_;
    std::uint64_t capture_id_;
    const std::string name_;
    Cancel& cancel_;
    Tell tell_;
    Roster roster_;
    Nanoseconds start_ns_;  // agreed, leader_ns; 0 where the captures began from the start
    Nanoseconds stop_ns_;
    std::string until_ = "the capture's end";  // what has cut short iterations that are missing
    Nanoseconds waits_from_;                   // for a start that was asked for
    fbs::Phase phase_ = fbs::Phase::Measuring;
    std::string phase_text_;
    SteadyTime last_told_;
    std::vector<PhaseTime> times_;
    SteadyTime timed_until_ = std::chrono::steady_clock::now();
};

}  // namespace ringside::agent
