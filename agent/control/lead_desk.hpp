// Holds the one trace that this agent may be leading, on a thread of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <zmq.hpp>

#include "agent/control/messages.hpp"
#include "agent/control/node_service.hpp"
#include "agent/control/outbox.hpp"
#include "agent/control/trace_run.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

/// What a command is told of its trace. All is written by then: where that is more than it would take, it is told so, and where to look.
MessageBytes trace_answer(std::uint64_t id, schema::Result<fbs::TraceReplyT> reply);

/// @thread main thread (the server's loop)
class LeadDesk {
public:
    LeadDesk(NodeService& service, zmq::context_t& context, Outbox& outbox)
        : service_(service), context_(context), outbox_(outbox) {}
    /// Ends a running trace early, keeping what there is.
    ~LeadDesk() { finish(); }

    /// Starts leading; its Progress and its reply go to `identity` through the outbox.
    /// @errors Refused: another trace runs, the message names it; there can be no thread
    schema::Result<void> start(std::string identity, std::uint64_t id, fbs::TraceRequestT request);
    /// @param capture_id  0: whichever runs
    /// @errors NothingMatched: no such trace runs; Refused: it is to be thrown away, and has been written already
    schema::Result<void> cancel(std::uint64_t capture_id, bool keep);
    /// The trace that is led now; 0: none.
    /// @thread thread-safe
    std::uint64_t leading() const { return leading_.load(std::memory_order_relaxed); }
    /// Who has asked for it, by the request's word; empty: none runs, or nobody has said.
    /// @thread thread-safe
    std::string asker() const;
    /// Whether a trace has not got to its end yet.
    bool running() const;
    /// Ends a running trace early, keeping what there is.
    void end();
    /// The same, and waits until its reply lies in the outbox.
    void finish();

private:
    NodeService& service_;
    zmq::context_t& context_;
    Outbox& outbox_;
    std::thread thread_;
    std::unique_ptr<Cancel> cancel_;  // of the thread's run
    std::unique_ptr<Event> done_;     // raised when the thread has nothing more to do
    std::uint64_t capture_id_ = 0;
    std::atomic<std::uint64_t> leading_{0};
    mutable std::mutex asker_mutex_;
    std::string asker_;
};

/// A random capture id, never 0.
std::uint64_t new_capture_id();

}  // namespace ringside::agent
