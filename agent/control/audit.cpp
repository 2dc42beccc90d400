#include "agent/control/audit.hpp"

#include <spdlog/fmt/chrono.h>
#include <spdlog/spdlog.h>

#include <ctime>
#include <utility>
#include <vector>

namespace ringside::agent {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostWords = 200;

/// What a client has written can't end a line, nor look like another field.
std::string quoted(const std::string& words) {
    std::string shown = "\"";
    for (const char c : words.substr(0, kMostWords))
        shown += c < ' ' || c == 0x7f ? '?' : c == '"' ? '\'' : c;
    return shown + "\"";
}

spdlog::level::level_enum level_of(fbs::MessageT& request) {
    switch (request.content.type) {
        case fbs::Content::PingRequest:
        case fbs::Content::StatusRequest:
        case fbs::Content::ProcessesRequest:
        case fbs::Content::IterationsRequest:
        case fbs::Content::RelayClocksRequest:
            return spdlog::level::debug;
        default:
            break;
    }
    // A file is asked for in thousands of parts.
    const auto* fetch = content_as<fbs::FetchRequestT>(request);
    return fetch != nullptr && fetch->offset != 0 ? spdlog::level::debug : spdlog::level::info;
}

std::string asker_of(fbs::MessageT& request) {
    if (const auto* trace = content_as<fbs::TraceRequestT>(request)) return trace->asker;
    if (const auto* prepare = content_as<fbs::PrepareRequestT>(request)) return prepare->asker;
    if (const auto* relay = content_as<fbs::RelayOpenRequestT>(request)) return relay->asker;
    return "";
}

/// Bytes of our own.
std::string result_of(const fbs::Message& reply) {
    const auto* error = reply.content_as_ErrorReply();
    if (error == nullptr) return "ok";
    return std::string(fbs::EnumNameCode(error->code())) +
           " cause=" + quoted(error->message() == nullptr ? "" : error->message()->str());
}

void write(spdlog::level::level_enum level, const std::string& line) {
    spdlog::log(level, "audit time={:%FT%TZ} {}", fmt::gmtime(std::time(nullptr)), line);
}

std::string property(zmq::message_t& message, const char* name) {
    const char* value = ::zmq_msg_gets(message.handle(), name);
    return value == nullptr ? "" : value;
}

}  // namespace

std::string sender_of(zmq::message_t& message) {
    const std::string address = property(message, "Peer-Address");
    const std::string key = property(message, "User-Id");
    if (!key.empty()) return address + ",key:" + key;
    // libzmq's words for a socket file: "localhost:<uid>:<gid>:<pid>".
    std::vector<std::string> parts(1);
    for (const char c : address) {
        if (c == ':')
            parts.emplace_back();
        else
            parts.back() += c;
    }
    if (parts.size() == 4) return "uid:" + parts[1] + ",pid:" + parts[3];
    return address.empty() ? "unknown" : address;
}

void Audit::asked(const std::string& identity, const std::string& sender, fbs::MessageT& request) {
    // What is in it is noted where it is passed on to; it has no answer of its own.
    if (request.content.type == fbs::Content::RelayRequest) return;
    // Who uses an id again before it is answered, for whatever, must not have the first request pass for the second one's answer.
    const auto before = open_.find({identity, request.id});
    if (before != open_.end()) {
        write_line(before->second,
                   "unknown cause=" + quoted("its id was used again before it was answered"));
        open_.erase(before);
    }
    const auto level = level_of(request);
    if (!spdlog::should_log(level)) return;
    open_.insert({{identity, request.id},
                  {sender, asker_of(request), request.content.type, level, Clock::now()}});
}

void Audit::answered(const std::string& identity, std::span<const std::uint8_t> reply) {
    const fbs::Message& message = *fbs::GetMessage(reply.data());
    if (message.content_type() == fbs::Content::Progress) return;
    const auto found = open_.find({identity, message.id()});
    if (found == open_.end()) return;
    write_line(found->second, result_of(message));
    open_.erase(found);
}

void Audit::write_line(const Request& request, const std::string& result) {
    const auto ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - request.since).count();
    write(static_cast<spdlog::level::level_enum>(request.level),
          fmt::format("peer={} asker={} request={} result={} ms={}", request.sender,
                      quoted(request.asker), fbs::EnumNameContent(request.kind), result, ms));
}

void Audit::damaged(const std::string& sender, const std::string& cause) {
    write(spdlog::level::warn,
          fmt::format("peer={} asker=\"\" request=none result=Input cause={} ms=0", sender,
                      quoted(cause)));
}

void Audit::too_often(const std::string& sender) {
    ++too_often_;
    const auto now = Clock::now();
    if (now - said_too_often_ < std::chrono::seconds(1)) return;
    said_too_often_ = now;
    write(spdlog::level::warn,
          fmt::format("peer={} asker=\"\" request=many result=Refused cause={} ms=0", sender,
                      quoted(std::to_string(std::exchange(too_often_, 0)) +
                             " requests that came too often since the last such line")));
}

}  // namespace ringside::agent
