#include "agent/control/lead_desk.hpp"

#include <spdlog/spdlog.h>
#include <sys/random.h>
#include <time.h>

#include <utility>

#include "agent/control/beside.hpp"
#include "schema/request_id.hpp"

namespace ringside::agent {

using schema::Error;
using schema::ErrorCode;

std::uint64_t new_capture_id() {
    std::uint64_t id = 0;
    if (::getrandom(&id, sizeof id, GRND_NONBLOCK) != sizeof id || id == 0) {
        const auto now = static_cast<std::uint64_t>(schema::read_clock(CLOCK_REALTIME).value);
        id = schema::mix64(now) | 1;  // an early boot without entropy
    }
    return id;
}

MessageBytes trace_answer(std::uint64_t id, schema::Result<fbs::TraceReplyT> reply) {
    if (!reply) return pack(id, error_reply(reply.error()));
    const std::string index = reply->job_index;
    const std::string whom = std::to_string(reply->nodes.size()) + " nodes and " +
                             std::to_string(reply->verdicts.size()) + " processes";
    MessageBytes bytes = pack(id, std::move(*reply));
    if (kind_of(bytes)) return bytes;
    return pack(id, error_reply({ErrorCode::kInternal,
                                 "tell of the trace of " + whom + ": that comes to " +
                                     std::to_string(bytes.size()) +
                                     " bytes, more than a command takes; the trace is whole, its "
                                     "job index is " +
                                     index + ": show that"}));
}

std::string LeadDesk::asker() const {
    const std::lock_guard lock(asker_mutex_);
    return leading() != 0 ? asker_ : "";
}

bool LeadDesk::running() const {
    return thread_.joinable() && !done_->raised();
}

schema::Result<void> LeadDesk::start(std::string identity, std::uint64_t id,
                                     fbs::TraceRequestT request) {
    if (running()) {
        return Error{ErrorCode::kRefused,
                     "trace: " + capture_name(capture_id_) +
                         (asker_.empty() ? "" : " (asked for by " + asker_ + ")") +
                         " is running here already; wait for its end or cancel it"};
    }
    if (thread_.joinable()) thread_.join();
    cancel_ = std::make_unique<Cancel>();
    done_ = std::make_unique<Event>();
    capture_id_ = new_capture_id();
    {
        const std::lock_guard lock(asker_mutex_);
        asker_ = request.asker;
    }
    leading_.store(capture_id_, std::memory_order_relaxed);
    auto leads =
        run_beside(thread_, [this, identity = std::move(identity), id, request = std::move(request),
                             capture_id = capture_id_, cancel = cancel_.get(), done = done_.get()] {
            const auto tell = [&](fbs::ProgressT progress) {
                outbox_.post({identity, pack(id, std::move(progress))});
            };
            TraceRun run(service_, context_, request, capture_id, *cancel, tell);
            auto reply = run.run();
            if (!reply) spdlog::warn("{}", reply.error().message);
            leading_.store(0, std::memory_order_relaxed);
            auto bytes = trace_answer(id, std::move(reply));
            // First: who has the reply may ask for the next trace.
            done->raise();
            outbox_.post({identity, std::move(bytes)});
        });
    if (!leads) leading_.store(0, std::memory_order_relaxed);
    return leads;
}

schema::Result<void> LeadDesk::cancel(std::uint64_t capture_id, bool keep) {
    if (!running() || (capture_id != 0 && capture_id != capture_id_)) {
        return Error{ErrorCode::kNothingMatched,
                     "cancel " +
                         (capture_id == 0 ? std::string("the trace") : capture_name(capture_id)) +
                         ": this agent leads no such trace now; it may be over already"};
    }
    if (cancel_->ask(keep)) return {};
    return Error{ErrorCode::kRefused, "throw " + capture_name(capture_id_) +
                                          " away: it is too late for that, its dumps are being "
                                          "joined; remove them where they lie"};
}

void LeadDesk::end() {
    if (running()) cancel_->ask(true);
}

void LeadDesk::finish() {
    end();
    if (thread_.joinable()) thread_.join();
}

}  // namespace ringside::agent
