// Asks one agent. What the command uses; public.
//
//   auto client = Client::connect(default_endpoint(root, job));
//   auto reply = client->ask<fbs::StatusReplyT>(fbs::StatusRequestT{}, kAnswerTimeout);
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "agent/control/link.hpp"
#include "agent/control/messages.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

/// An agent that is there answers a plain question well within this.
inline constexpr Milliseconds kAnswerTimeout{5000};
/// During a trace something is heard twice a second; where its leader is at something that takes its time (a name server, a disk) it says so when it is asked.
inline constexpr Milliseconds kTraceSilence{15000};

/// What all of this process that ask have in common: two threads and some descriptors, which each of a thousand clients would have too many of. Made
/// for the first of them, gone with the last; a child that has forked makes its own.
/// @errors Internal: no threads or descriptors are left
/// @thread thread-safe
schema::Result<std::shared_ptr<zmq::context_t>> asking_context();

struct TraceHooks {
    /// Called for each Progress message; may be empty.
    std::function<void(const fbs::ProgressT&)> progress;
    /// Asked several times a second, also after a signal; may be empty.
    enum class Wish { kGoOn, kCancelAndKeep, kCancel };
    std::function<Wish()> wish;
    Milliseconds silence = kTraceSilence;  ///< after it the agent is given up; a test's may be less
};

/// @thread one caller at a time
class Client {
public:
    /// @param key  for tcp endpoints; null: none at hand
    /// @errors NoAgent, Refused, Usage: with what to do
    static schema::Result<std::unique_ptr<Client>> connect(const std::string& endpoint,
                                                           const Key* key = nullptr);

    /// One request, one reply.
    /// @errors what the agent says; NoAgent: it does not answer in time
    template <class Reply, class Request>
    schema::Result<Reply> ask(Request request, Milliseconds timeout = kAnswerTimeout) {
        auto message = exchange(pack(link_.next_id(), std::move(request)), timeout);
        if (!message) return message.error();
        if (Reply* reply = content_as<Reply>(*message)) return std::move(*reply);
        return unexpected();
    }

    /// Leads a capture; returns when it is written.
    /// @errors what the agent says; NoAgent: it fell silent or died in between
    schema::Result<fbs::TraceReplyT> trace(fbs::TraceRequestT request, const TraceHooks& hooks);

    const std::string& endpoint() const { return link_.endpoint(); }

private:
    Client(std::shared_ptr<zmq::context_t> context, Link link)
        : context_(std::move(context)), link_(std::move(link)) {}
    schema::Result<fbs::MessageT> exchange(const MessageBytes& request, Milliseconds timeout);
    void keep_in_touch(bool in_doubt);
    schema::Error unexpected() const;
    schema::Error silent(Milliseconds timeout) const;

    std::shared_ptr<zmq::context_t> context_;  // outlives link_
    Link link_;
};

}  // namespace ringside::agent
