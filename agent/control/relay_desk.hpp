// Holds what this agent passes on for leaders elsewhere: a relay for each of them, bounded, and ended when its leader is gone.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <zmq.hpp>

#include "agent/control/messages.hpp"
#include "agent/control/node_service.hpp"
#include "agent/control/outbox.hpp"
#include "agent/control/relay.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

/// Of all leaders together.
inline constexpr std::size_t kMostRelays = 8;
inline constexpr std::size_t kMostRelayedOfAll = 2 * kMostRelayed;

/// @thread main thread (the server's loop)
class RelayDesk {
public:
    RelayDesk(NodeService& service, zmq::context_t& context, Outbox& outbox)
        : service_(service), context_(context), outbox_(outbox) {}

    /// A leader that says nothing for so long has gone.
    void set_silence(std::chrono::milliseconds silence) { silence_ = silence; }
    /// One of the three requests; what it does not return goes through the outbox.
    std::optional<MessageBytes> take(const std::string& leader, fbs::MessageT message);
    /// It lives.
    void heard(const std::string& leader);
    /// Ends those whose leader has gone, and forgets those that have ended.
    void look();
    /// Ends all of them.
    void finish() { held_.clear(); }

private:
    struct Held {
        std::unique_ptr<Relay> relay;
        std::chrono::steady_clock::time_point heard;
        bool ending = false;
    };
    Held* of(const std::string& leader);
    schema::Result<void> check(const std::vector<std::string>& endpoints) const;
    std::optional<MessageBytes> open(const std::string& leader, std::uint64_t id,
                                     std::vector<std::string> endpoints);

    NodeService& service_;
    zmq::context_t& context_;
    Outbox& outbox_;
    std::chrono::milliseconds silence_{60'000};
    std::vector<Held> held_;
};

}  // namespace ringside::agent
