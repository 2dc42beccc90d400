// The server's part that sends: answers with their lines of the audit, bounded by what their receivers read.
#include <spdlog/spdlog.h>

#include <utility>

#include "agent/control/server.hpp"

namespace ringside::agent {

void Server::send(Letter letter) {
    const fbs::ErrorReply* error = fbs::GetMessage(letter.bytes.data())->content_as_ErrorReply();
    if (error != nullptr && error->code() == fbs::Code::RefusedCode) ++counts_.refused;
    audit_.answered(letter.identity, letter.bytes);
    put(std::move(letter));
}

void Server::put(Letter letter) {
    const std::string identity = letter.identity;
    const auto size = letter.bytes.size();
    // What holds a place of its own, of files or a relay's, is bounded there.
    if (size >= kSmallLetter && !letter.held) {
        letter.place = unsent_letters_.hold(identity, size);
        if (!letter.place) {
            ++counts_.unsent;
            return;
        }
    }
    auto* const kept = new Letter(std::move(letter));
    // Not copied: the letter is libzmq's until it has written it, and so it knows how long its place is held.
    zmq::message_t body(
        kept->bytes.data(), size, [](void*, void* hint) { delete static_cast<Letter*>(hint); },
        kept);
    try {
        // Both parts or none: with `mandatory` the first one fails where the client is gone or reads nothing.
        const auto flags = zmq::send_flags::dontwait;
        if (socket_.send(zmq::buffer(identity), flags | zmq::send_flags::sndmore) &&
            socket_.send(body, flags)) {
            return;
        }
    } catch (const zmq::error_t& error) {
        spdlog::debug("reply of {} bytes not sent: {}", size, error.what());
    }
    ++counts_.unsent;
}

void Server::send_letters() {
    for (Letter& letter : outbox_.take()) {
        // Only here: a prepare that was refused must not take the lease from the capture that runs.
        if (letter.leads != 0)
            lease_.give(letter.identity, letter.leads, std::chrono::steady_clock::now());
        send(std::move(letter));
    }
}

}  // namespace ringside::agent
