// What stands where an agent is expected, and answers as a test says.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <zmq.hpp>

#include "agent/control/messages.hpp"
#include "schema/ticks.hpp"

namespace ringside::agent::test {

inline MessageBytes ping_reply(const fbs::MessageT& ping) {
    fbs::PingReplyT reply;
    reply.node_ns = schema::read_clock(CLOCK_REALTIME).value;
    return pack(ping.id, std::move(reply));
}

class ScriptedAgent {
public:
    /// @param message  null: nobody has asked anything for a while
    /// @return what is said to the one who asked last
    using Script = std::function<std::vector<MessageBytes>(fbs::MessageT* message)>;

    ScriptedAgent(std::string at, Script script)
        : endpoint(std::move(at)),
          script_(std::move(script)),
          socket_(context_, zmq::socket_type::router) {
        socket_.set(zmq::sockopt::linger, 0);
        socket_.bind(endpoint);
        thread_ = std::thread([this] { serve(); });
    }
    ~ScriptedAgent() {
        ending_ = true;
        thread_.join();
    }
    ScriptedAgent(const ScriptedAgent&) = delete;
    ScriptedAgent& operator=(const ScriptedAgent&) = delete;

    const std::string endpoint;

private:
    void serve() {
        std::string asker;
        while (!ending_) {
            zmq::pollitem_t item{socket_.handle(), 0, ZMQ_POLLIN, 0};
            std::vector<MessageBytes> answers;
            if (::zmq_poll(&item, 1, 20) > 0) {
                zmq::message_t identity, body;
                (void)socket_.recv(identity);
                (void)socket_.recv(body);
                auto message =
                    unpack_message({static_cast<const std::uint8_t*>(body.data()), body.size()});
                if (!message) continue;
                asker = identity.to_string();
                answers = script_(&*message);
            } else {
                answers = script_(nullptr);
            }
            for (const MessageBytes& answer : answers) {
                socket_.send(zmq::buffer(asker), zmq::send_flags::sndmore);
                socket_.send(zmq::buffer(answer), zmq::send_flags::none);
            }
        }
    }

    const Script script_;
    zmq::context_t context_;
    zmq::socket_t socket_;
    std::atomic<bool> ending_{false};
    std::thread thread_;
};

}  // namespace ringside::agent::test
