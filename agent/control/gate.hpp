// Who may speak to a tcp endpoint: libzmq asks here (ZAP, https://rfc.zeromq.org/spec/27/) about each connection, and it is let in if it
// holds the agent's own key. Without it CURVE would let in whoever knows the public half.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include <zmq.hpp>

#include "agent/control/key.hpp"
#include "agent/control/outbox.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

/// Lives with the context, on a thread of its own.
class Gate {
public:
    /// @errors Internal
    static schema::Result<std::unique_ptr<Gate>> open(zmq::context_t& context, const Key& key);
    ~Gate();
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;

    /// Connections that were turned away.
    std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

private:
    Gate(zmq::socket_t socket, std::string public_half, std::string name);
    void run();
    void answer_one();

    zmq::socket_t socket_;  // the thread's
    std::string public_half_;
    std::string name_;  // of who holds it, in the audit's lines
    std::atomic<std::uint64_t> refused_{0};
    Event ending_;
    std::thread thread_;
};

}  // namespace ringside::agent
