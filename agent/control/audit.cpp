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
constexpr std::chrono::minutes kBetweenCounts{10};
constexpr std::size_t kMostSenders = 64;  ///< that are counted each by itself
constexpr const char* kOthers = "others";

std::shared_ptr<spdlog::logger>& own_logger() {
    static std::shared_ptr<spdlog::logger> logger;
    return logger;
}

/// What a client has written can't end a line, nor look like another field.
std::string quoted(const std::string& words) {
    std::string shown = "\"";
    for (const char c : words.substr(0, kMostWords))
        shown += c < ' ' || c == 0x7f ? '?' : c == '"' ? '\'' : c;
    return shown + "\"";
}

/// Changes nothing and gives nothing away that a file holds; or, of a file, a part after its first: there are thousands of them.
bool only_looks(fbs::MessageT& request) {
    switch (request.content.type) {
        case fbs::Content::PingRequest:
        case fbs::Content::StatusRequest:
        case fbs::Content::ProcessesRequest:
        case fbs::Content::IterationsRequest:
        case fbs::Content::RelayClocksRequest:
            return true;
        default:
            break;
    }
    const auto* fetch = content_as<fbs::FetchRequestT>(request);
    return fetch != nullptr && fetch->offset != 0;
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

bool shows(spdlog::level::level_enum level) {
    return spdlog::should_log(level) || (own_logger() && level >= spdlog::level::info);
}

void write(spdlog::level::level_enum level, const std::string& line) {
    const auto& own = own_logger();
    spdlog::logger& to = own ? *own : *spdlog::default_logger_raw();
    to.log(level, "audit time={:%FT%TZ} {}", fmt::gmtime(std::time(nullptr)), line);
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
    if (!shows(spdlog::level::info)) return;
    const bool counted = only_looks(request) && !spdlog::should_log(spdlog::level::debug) &&
                         !is_first_look(sender, request.content.type);
    // A leader's pings are many, and measure.
    if (counted && request.content.type == fbs::Content::PingRequest) return;
    open_.insert({{identity, request.id},
                  {sender, asker_of(request), request.content.type, Clock::now(), counted}});
}

/// Counts it where it is not.
bool Audit::is_first_look(const std::string& sender, fbs::Content kind) {
    if (Clock::now() - looks_since_ > kBetweenCounts) tell_looks();
    const auto known = looks_.find(sender);
    if (known != looks_.end()) {
        ++known->second[kind];
        return false;
    }
    const bool first = looks_.size() < kMostSenders;
    Counts& counts = looks_[first ? sender : kOthers];
    if (!first) ++counts[kind];
    return first;
}

void Audit::tell_looks() {
    const auto now = Clock::now();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - looks_since_);
    for (const auto& [sender, counts] : looks_) {
        std::string said;
        for (const auto& [kind, count] : counts)
            said += (said.empty() ? "" : ", ") + std::to_string(count) + " " +
                    fbs::EnumNameContent(kind);
        if (said.empty()) continue;
        write(spdlog::level::info,
              fmt::format("peer={} asker=\"\" request=many result=ok cause={} ms=0", sender,
                          quoted("in " + std::to_string(seconds.count()) +
                                 " s, beside what has a line: " + said)));
    }
    looks_.clear();
    looks_since_ = now;
}

Audit::~Audit() {
    if (shows(spdlog::level::info)) tell_looks();
}

void Audit::write_to(std::shared_ptr<spdlog::logger> logger) {
    own_logger() = std::move(logger);
}

void Audit::answered(const std::string& identity, std::span<const std::uint8_t> reply) {
    const fbs::Message& message = *fbs::GetMessage(reply.data());
    if (message.content_type() == fbs::Content::Progress) return;
    const auto found = open_.find({identity, message.id()});
    if (found == open_.end()) return;
    const bool failed = message.content_type() == fbs::Content::ErrorReply;
    if (!found->second.counted || failed) write_line(found->second, result_of(message));
    open_.erase(found);
}

void Audit::write_line(const Request& request, const std::string& result) {
    const auto ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - request.since).count();
    write(spdlog::level::info,
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
