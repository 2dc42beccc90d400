// What was asked of this agent, by whom, and what came of it: one line of the log each, when it is answered.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>

#include <zmq.hpp>

#include "agent/control/messages.hpp"

namespace ringside::agent {

/// Who sent `message`: its user and process on this host, its address and key from another. Known from the connection, never from its words.
std::string sender_of(zmq::message_t& message);

/// Requests that only look are for `--log-level debug`, all others are `info`, what is no request is a warning.
/// @thread one thread, the server's
class Audit {
public:
    void asked(const std::string& identity, const std::string& sender, fbs::MessageT& request);
    /// Progress is no answer.
    void answered(const std::string& identity, std::span<const std::uint8_t> reply);
    /// What could not be read as one.
    static void damaged(const std::string& sender, const std::string& cause);
    /// One that came too often: a line a second says how many there were since the last.
    void too_often(const std::string& sender);

private:
    struct Request {
        std::string sender;
        std::string asker;
        fbs::Content kind;
        int level;  ///< spdlog's
        std::chrono::steady_clock::time_point since;
    };
    static void write_line(const Request& request, const std::string& result);

    /// By client and message id.
    std::map<std::pair<std::string, std::uint64_t>, Request> open_;
    std::uint64_t too_often_ = 0;  ///< since their last line
    std::chrono::steady_clock::time_point said_too_often_{};
};

}  // namespace ringside::agent
