// What was asked of this agent, by whom, and what came of it: one line each, when it is answered; of who only looks, the first question and how many
// there were.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <zmq.hpp>

#include "agent/control/messages.hpp"

namespace spdlog {  // NOLINT(readability-identifier-naming): the library's own
class logger;       // NOLINT(readability-identifier-naming): the library's own
}

namespace ringside::agent {

/// Who sent `message`: its user and process on this host, its address and key from another. Known from the connection, never from its words.
std::string sender_of(zmq::message_t& message);

/// Requests that only look have lines of their own for `--log-level debug` and where they fail; else each who asks has one and, after ten minutes or at
/// the end, one that counts the others. All other requests are `info`, what is no request is a warning.
/// @thread one thread, the server's
class Audit {
public:
    Audit() = default;
    ~Audit();
    Audit(const Audit&) = delete;
    Audit& operator=(const Audit&) = delete;

    /// Where all audits' lines go, whatever level the log has; null, as at first: into the log, as far as its level shows them.
    /// @thread before there is a server, or after the last
    static void write_to(std::shared_ptr<spdlog::logger> logger);

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
        std::chrono::steady_clock::time_point since;
        bool counted = false;  ///< it has a line where it fails alone
    };
    /// Of one sender, beside the first.
    using Counts = std::map<fbs::Content, std::uint64_t>;

    bool is_first_look(const std::string& sender, fbs::Content kind);
    void tell_looks();
    static void write_line(const Request& request, const std::string& result);

    /// By client and message id.
    std::map<std::pair<std::string, std::uint64_t>, Request> open_;
    std::map<std::string, Counts> looks_;  ///< by sender; beyond a bound together
    std::chrono::steady_clock::time_point looks_since_ = std::chrono::steady_clock::now();
    std::uint64_t too_often_ = 0;  ///< since their last line
    std::chrono::steady_clock::time_point said_too_often_{};
};

}  // namespace ringside::agent
