// A leader that says to a relay what a test wants, one message after the other.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/control/link.hpp"
#include "agent/control/messages.hpp"

namespace ringside::agent::test {

class ByHand {
public:
    explicit ByHand(const std::string& endpoint)
        : link_(std::move(*Link::connect(context_, endpoint, nullptr))) {}

    template <class Request>
    void say(Request request) {
        REQUIRE(link_.send(pack(link_.next_id(), std::move(request))));
    }
    /// The next message but one.
    fbs::MessageT hear() {
        auto message = link_.receive(std::chrono::steady_clock::now() + Milliseconds(8'000));
        REQUIRE(message);
        REQUIRE(*message);
        return std::move(**message);
    }
    fbs::MessageT open(std::vector<std::string> endpoints) {
        fbs::RelayOpenRequestT request;
        request.endpoints = std::move(endpoints);
        say(std::move(request));
        return hear();
    }
    template <class Request>
    void pass_on(std::vector<std::uint32_t> nodes, Request request) {
        fbs::RelayRequestT envelope;
        envelope.messages.push_back(std::make_unique<fbs::RelayedT>());
        envelope.messages[0]->nodes = std::move(nodes);
        envelope.messages[0]->body = pack(77, std::move(request));
        say(std::move(envelope));
    }
    /// What one node says to the leader.
    fbs::MessageT hear_through() {
        auto envelope = hear();
        const auto* reply = content_as<fbs::RelayReplyT>(envelope);
        REQUIRE(reply != nullptr);
        REQUIRE(reply->messages.size() == 1);
        auto message = unpack_message(reply->messages[0]->body);
        REQUIRE(message);
        return std::move(*message);
    }

private:
    zmq::context_t context_;
    Link link_;
};

}  // namespace ringside::agent::test
