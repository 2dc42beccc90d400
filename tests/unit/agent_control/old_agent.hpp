// An agent of before iterations could be counted: it tells who it is and answers pings, as it always did, and takes note of what else is asked.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "scripted_agent.hpp"

namespace ringside::agent::test {

class OldAgent {
public:
    explicit OldAgent(const std::string& socket_path)
        : endpoint("ipc://" + socket_path), agent_(endpoint, [this](fbs::MessageT* message) {
              std::vector<MessageBytes> said;
              if (message != nullptr) said.push_back(answer_to(*message));
              return said;
          }) {}

    const std::string endpoint;
    std::atomic<int> orders{0};  ///< anything but pings and questions of who it is

private:
    MessageBytes answer_to(const fbs::MessageT& message) {
        if (message.content.type == fbs::Content::PingRequest) return ping_reply(message);
        if (message.content.type == fbs::Content::StatusRequest) {
            fbs::StatusReplyT status;
            status.node = "old";
            status.version = "0.1.0";
            return pack(message.id, std::move(status));
        }
        ++orders;
        return pack(message.id, error_reply({schema::ErrorCode::kUsage, "what is that?"}));
    }

    ScriptedAgent agent_;
};

}  // namespace ringside::agent::test
