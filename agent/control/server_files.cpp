// The server's part that gives files away: on a worker of its own, no more of them waiting than a bound, whoever asks.
#include <memory>
#include <utility>

#include "agent/control/server.hpp"

namespace ringside::agent {
namespace {

MessageBytes busy(std::uint64_t id, std::uint64_t offset) {
    fbs::FetchReplyT reply;
    reply.offset = offset;
    reply.busy = true;
    return pack(id, std::move(reply));
}

}  // namespace

void Server::give_file(Asked asked) {
    const std::uint64_t id = asked.message.id;
    const std::string identity = asked.identity;
    auto request = std::make_shared<fbs::FetchRequestT>(
        std::move(*content_as<fbs::FetchRequestT>(asked.message)));
    Worker::Task task;
    task.bytes = asked.bytes;
    task.run = [this, identity, id, request] {
        Letter letter{identity, {}};
        // For the largest part, before it is read: of those that may not be sent none is in memory.
        letter.held = unsent_.hold(request->digest ? 0 : kMostPartBytes);
        if (!letter.held) {
            letter.bytes = busy(id, request->offset);
        } else {
            auto reply = files_.read(*request);
            letter.bytes =
                reply ? pack(id, std::move(*reply)) : pack(id, error_reply(reply.error()));
        }
        outbox_.post(std::move(letter));
    };
    // The agent ends: who asks again finds the next one.
    task.drop = [this, identity, id, request] {
        outbox_.post({identity, busy(id, request->offset)});
    };
    if (!files_worker_->submit(identity, std::move(task)))
        send({identity, busy(id, request->offset)});
}

}  // namespace ringside::agent
