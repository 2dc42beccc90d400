// An agent of before iterations could be counted: it tells who it is and answers pings, as it always did, and takes note of what else is asked.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include <zmq.hpp>

#include "agent/control/messages.hpp"
#include "schema/ticks.hpp"

namespace ringside::agent::test {

class OldAgent {
public:
    explicit OldAgent(const std::string& socket_path)
        : endpoint("ipc://" + socket_path), socket_(context_, zmq::socket_type::router) {
        socket_.bind(endpoint);
        thread_ = std::thread([this] { serve(); });
    }
    ~OldAgent() {
        ending_ = true;
        thread_.join();
    }
    OldAgent(const OldAgent&) = delete;
    OldAgent& operator=(const OldAgent&) = delete;

    const std::string endpoint;
    std::atomic<int> orders{0};  ///< anything but pings and questions of who it is

private:
    void serve() {
        while (!ending_) {
            zmq::pollitem_t item{socket_.handle(), 0, ZMQ_POLLIN, 0};
            if (::zmq_poll(&item, 1, 20) <= 0) continue;
            zmq::message_t identity, body;
            (void)socket_.recv(identity);
            (void)socket_.recv(body);
            auto message =
                unpack_message({static_cast<const std::uint8_t*>(body.data()), body.size()});
            if (!message) continue;
            const MessageBytes answer = answer_to(*message);
            socket_.send(identity, zmq::send_flags::sndmore);
            socket_.send(zmq::buffer(answer), zmq::send_flags::none);
        }
    }
    MessageBytes answer_to(const fbs::MessageT& message) {
        if (message.content.type == fbs::Content::PingRequest) {
            fbs::PingReplyT ping;
            ping.node_ns = schema::read_clock(CLOCK_REALTIME).value;
            return pack(message.id, std::move(ping));
        }
        if (message.content.type == fbs::Content::StatusRequest) {
            fbs::StatusReplyT status;
            status.node = "old";
            status.version = "0.1.0";
            return pack(message.id, std::move(status));
        }
        ++orders;
        return pack(message.id, error_reply({schema::ErrorCode::kUsage, "what is that?"}));
    }

    zmq::context_t context_;
    zmq::socket_t socket_;
    std::atomic<bool> ending_{false};
    std::thread thread_;
};

}  // namespace ringside::agent::test
