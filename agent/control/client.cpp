#include "agent/control/client.hpp"

#include <unistd.h>

#include <mutex>
#include <optional>

#include "agent/attach/without_signals.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;
using Clock = std::chrono::steady_clock;

/// How often a wait looks up: whether the agent lives and what the caller wishes.
constexpr Milliseconds kLookUp{200};
/// In one context; libzmq's own bound is 1023, and a client of an agent with a key has three for a moment.
constexpr int kMostSockets = 16'384;

/// With its threads. libzmq blocks signals in them, but only once they run: one that comes late would take a signal that its process has
/// blocked by then and reads as data, and die of it.
std::shared_ptr<zmq::context_t> context_without_signals() {
    const WithoutSignals without;
    auto context = std::make_shared<zmq::context_t>(1);
    context->set(zmq::ctxopt::max_sockets, kMostSockets);
    const zmq::socket_t first(*context, zmq::socket_type::pair);  // makes them
    return context;
}

/// A trace may last for a day. Who says nothing meanwhile is, beside many others, the one whose connection is closed, and libzmq's own heartbeats lie unread there
/// until something else is read.
constexpr Milliseconds kPingEvery{2000};

}  // namespace

schema::Result<std::shared_ptr<zmq::context_t>> asking_context() {
    static std::mutex mutex;
    static std::weak_ptr<zmq::context_t> shared;
    static pid_t owner = 0;  // a context does not live through a fork
    const std::lock_guard lock(mutex);
    auto context = owner == ::getpid() ? shared.lock() : nullptr;
    if (context) return context;
    try {
        context = context_without_signals();
    } catch (const zmq::error_t& error) {
        return Error{ErrorCode::kInternal, std::string("make a connection: ") + error.what() +
                                               "; raise the limit of open files (ulimit -n)"};
    }
    shared = context;
    owner = ::getpid();
    return context;
}

schema::Result<std::unique_ptr<Client>> Client::connect(const std::string& endpoint,
                                                        const Key* key) {
    auto context = asking_context();
    if (!context) return context.error();
    auto link = Link::connect(**context, endpoint, key);
    if (!link) return link.error();
    return std::unique_ptr<Client>(new Client(std::move(*context), std::move(*link)));
}

Error Client::unexpected() const {
    return {ErrorCode::kInput,
            "ask " + link_.endpoint() +
                ": it answered something else; is the agent of this version? (`ringside version`)"};
}

Error Client::silent(Milliseconds timeout) const {
    return {ErrorCode::kNoAgent, "ask " + link_.endpoint() + ": no answer within " +
                                     std::to_string(timeout.count()) +
                                     " ms; is the agent stopped or overloaded?"};
}

schema::Result<fbs::MessageT> Client::exchange(const MessageBytes& request, Milliseconds timeout) {
    const std::uint64_t id = fbs::GetMessage(request.data())->id();
    if (auto sent = link_.send(request); !sent) return sent.error();
    const SteadyTime deadline = Clock::now() + timeout;
    while (Clock::now() < deadline) {
        auto message = link_.receive(std::min(deadline, Clock::now() + kLookUp));
        if (!message) return message.error();
        if (!*message) {
            if (auto alive = link_.probe(); !alive) return alive.error();
            continue;
        }
        if (const auto unread = unread_by(link_.endpoint(), **message)) return *unread;
        if ((*message)->id != id) continue;  // a late answer to an earlier question
        if (const auto* error = content_as<fbs::ErrorReplyT>(**message)) return error_of(*error);
        return std::move(**message);
    }
    return silent(timeout);
}

/// One that can't be sent is no fault.
/// @param in_doubt  whether the trace goes on: it asks
void Client::keep_in_touch(bool in_doubt) {
    const std::uint64_t id = link_.next_id();
    (void)link_.send(in_doubt ? pack(id, fbs::StatusRequestT{}) : pack(id, fbs::PingRequestT{}));
}

schema::Result<fbs::TraceReplyT> Client::trace(fbs::TraceRequestT request,
                                               const TraceHooks& hooks) {
    using Wish = TraceHooks::Wish;
    const std::uint64_t id = link_.next_id();
    if (auto sent = link_.send(pack(id, std::move(request))); !sent) return sent.error();
    SteadyTime heard = Clock::now(), said = heard;
    std::uint64_t capture_id = 0;
    Wish told = Wish::kGoOn;
    while (Clock::now() - heard < hooks.silence) {
        const auto wish = hooks.wish ? hooks.wish() : Wish::kGoOn;
        if (wish != told) {
            fbs::CancelRequestT cancel;
            cancel.keep = wish == Wish::kCancelAndKeep;
            if (auto sent = link_.send(pack(link_.next_id(), cancel)); !sent) return sent.error();
            told = wish;
        }
        if (Clock::now() - said >= std::min(kPingEvery, hooks.silence / 4)) {
            keep_in_touch(Clock::now() - heard >= hooks.silence / 4);
            said = Clock::now();
        }
        auto message = link_.receive(Clock::now() + kLookUp);
        if (!message) return message.error();
        if (!*message) {
            if (auto alive = link_.probe(); !alive) return alive.error();
            continue;
        }
        if ((*message)->id != id) {
            // Who gives it up waits for its own word alone.
            const auto* status = content_as<fbs::StatusReplyT>(**message);
            const bool goes_on = status != nullptr && status->leading != 0 &&
                                 status->leading == capture_id && told != Wish::kCancel;
            if (goes_on) heard = Clock::now();
            continue;
        }
        heard = Clock::now();
        if (const auto* progress = content_as<fbs::ProgressT>(**message)) {
            capture_id = progress->capture_id;
            if (hooks.progress) hooks.progress(*progress);
        } else if (auto* reply = content_as<fbs::TraceReplyT>(**message)) {
            return std::move(*reply);
        } else if (const auto* error = content_as<fbs::ErrorReplyT>(**message)) {
            return error_of(*error);
        } else {
            return unexpected();
        }
    }
    return silent(hooks.silence);
}

}  // namespace ringside::agent
