// The server's part that finds for each request who does it: the loop itself, a worker, the desk that leads, or the one of the relays.
#include <memory>
#include <utility>

#include "agent/control/convert.hpp"
#include "agent/control/server.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;
using Clock = std::chrono::steady_clock;

Error not_a_request(const fbs::MessageT& message) {
    return {ErrorCode::kUsage,
            "message of kind " + std::to_string(static_cast<int>(message.content.type)) +
                " is no request that this agent takes; is it newer? install the same version"};
}

Error is_ending() {
    return {ErrorCode::kRefused,
            "this agent is ending, and has not begun with that; ask the one that comes after it"};
}

}  // namespace

void Server::handle(Asked asked) {
    const std::string& identity = asked.identity;
    fbs::MessageT& message = asked.message;
    lease_.heard(identity, message, Clock::now());
    relays_.heard(identity);
    if (answer_at_once(identity, message)) return;
    switch (message.content.type) {
        case fbs::Content::PrepareRequest:
        case fbs::Content::BeginRequest:
        case fbs::Content::StopRequest:
        case fbs::Content::HalvesRequest:
        case fbs::Content::ArmRequest:
        case fbs::Content::DisarmRequest:
            return hand_to(*orders_, std::move(asked));
        case fbs::Content::StatusRequest:
        case fbs::Content::ProcessesRequest:
        case fbs::Content::IterationsRequest:
            return hand_to(*queries_, std::move(asked));
        case fbs::Content::PeersRequest:
            return hand_to(*finder_, std::move(asked));
        case fbs::Content::FetchRequest:
            return give_file(std::move(asked));
        case fbs::Content::TraceRequest:
        case fbs::Content::CancelRequest:
            return lead(std::move(asked));
        case fbs::Content::RelayOpenRequest:
        case fbs::Content::RelayRequest:
        case fbs::Content::RelayClocksRequest:
            if (auto reply = relays_.take(identity, std::move(message)))
                send({identity, std::move(*reply)});
            return;
        default:
            send({identity, pack(message.id, error_reply(not_a_request(message)))});
    }
}

bool Server::answer_at_once(const std::string& identity, fbs::MessageT& message) {
    Engine& engine = service_.engine();
    switch (message.content.type) {
        case fbs::Content::PingRequest: {
            fbs::PingReplyT reply;
            reply.node_ns =
                engine.node_now().value;  // first: the rest is not part of the round trip's middle
            reply.node = engine.options().node;
            send({identity, pack(message.id, std::move(reply))});
            return true;
        }
        case fbs::Content::ShutdownRequest:
            shutdown_ = true;
            send({identity, pack(message.id, fbs::ShutdownReplyT{})});
            return true;
        default:
            return false;
    }
}

void Server::hand_to(Worker& worker, Asked asked) {
    const std::uint64_t id = asked.message.id;
    const std::string identity = asked.identity;
    // What is not begun when the agent ends is not done any more, but for the end of a capture: its leader waits for the dump.
    const bool is_needed = asked.message.content.type == fbs::Content::StopRequest;
    Worker::Task task;
    task.bytes = asked.bytes;
    auto shared = std::make_shared<fbs::MessageT>(std::move(asked.message));
    task.run = [this, identity, shared, counts = counts_] {
        Letter letter{identity, {}};
        letter.bytes = work(*shared, counts, letter.leads);
        outbox_.post(std::move(letter));
    };
    if (!is_needed)
        task.drop = [this, identity, id] {
            outbox_.post({identity, pack(id, error_reply(is_ending()))});
        };
    if (auto taken = worker.submit(identity, std::move(task)); !taken)
        send({identity, pack(id, error_reply(taken.error()))});
}

/// Runs on a worker's thread.
/// @param leads  the capture that the client leads from now on; untouched if it is none
MessageBytes Server::work(fbs::MessageT& message, const ServerCounts& counts,
                          std::uint64_t& leads) {
    const std::uint64_t id = message.id;
    if (const auto* prepare = content_as<fbs::PrepareRequestT>(message)) {
        auto reply = service_.prepare(*prepare);
        if (reply) leads = prepare->capture_id;
        return reply ? pack(id, std::move(*reply)) : pack(id, error_reply(reply.error()));
    }
    if (const auto* begin = content_as<fbs::BeginRequestT>(message)) {
        auto done = service_.begin(*begin);
        return done ? pack(id, fbs::BeginReplyT{}) : pack(id, error_reply(done.error()));
    }
    if (const auto* stop = content_as<fbs::StopRequestT>(message)) {
        auto reply = service_.stop(*stop);
        return reply ? pack(id, std::move(*reply)) : pack(id, error_reply(reply.error()));
    }
    if (const auto* halves = content_as<fbs::HalvesRequestT>(message)) {
        auto reply = service_.halves(id, *halves);
        return reply ? std::move(*reply) : pack(id, error_reply(reply.error()));
    }
    if (const auto* arm = content_as<fbs::ArmRequestT>(message)) {
        auto reply = service_.arm(*arm);
        return reply ? pack(id, std::move(*reply)) : pack(id, error_reply(reply.error()));
    }
    if (message.content.type == fbs::Content::DisarmRequest) {
        auto reply = service_.disarm();
        return reply ? pack(id, std::move(*reply)) : pack(id, error_reply(reply.error()));
    }
    if (const auto* iterations = content_as<fbs::IterationsRequestT>(message)) {
        const auto reply = service_.iterations(*iterations);
        return reply ? pack(id, *reply) : pack(id, error_reply(reply.error()));
    }
    if (const auto* peers = content_as<fbs::PeersRequestT>(message)) {
        auto reply = service_.peers(*peers);
        return reply ? pack(id, std::move(*reply)) : pack(id, error_reply(reply.error()));
    }
    if (message.content.type == fbs::Content::StatusRequest) return pack(id, status(counts));
    if (message.content.type == fbs::Content::ProcessesRequest)
        return pack(id, processes_reply(service_.engine()));
    return pack(id, error_reply(not_a_request(message)));
}

/// @param counts  as they were when it was asked: they are the loop's
fbs::StatusReplyT Server::status(const ServerCounts& counts) const {
    fbs::StatusReplyT reply = status_reply(service_.engine(), service_.identity());
    reply.leading = desk_.leading();
    if (reply.asker.empty()) reply.asker = desk_.asker();
    reply.requests = counts.requests;
    reply.refused = counts.refused;
    reply.damaged = counts.damaged;
    return reply;
}

void Server::lead(Asked asked) {
    schema::Result<void> result;
    if (auto* trace = content_as<fbs::TraceRequestT>(asked.message)) {
        result = desk_.start(asked.identity, asked.message.id, std::move(*trace));
        if (result) return connections_.spare(asked.descriptor);  // the desk answers
    } else if (const auto* cancel = content_as<fbs::CancelRequestT>(asked.message)) {
        result = desk_.cancel(cancel->capture_id, cancel->keep);
    }
    send({asked.identity, result ? pack(asked.message.id, fbs::CancelReplyT{})
                                 : pack(asked.message.id, error_reply(result.error()))});
}

}  // namespace ringside::agent
