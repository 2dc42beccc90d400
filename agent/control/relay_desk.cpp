#include "agent/control/relay_desk.hpp"

#include <spdlog/spdlog.h>

#include <unordered_set>
#include <utility>

#include "agent/control/endpoint.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;
using Clock = std::chrono::steady_clock;

constexpr const char* kNoneOpen =
    "pass on a message: no relay is open here for who asks; was this agent started anew?";

}  // namespace

RelayDesk::Held* RelayDesk::of(const std::string& leader) {
    for (Held& held : held_) {
        if (!held.ending && held.relay->leader() == leader) return &held;
    }
    return nullptr;
}

void RelayDesk::heard(const std::string& leader) {
    if (held_.empty()) return;
    if (Held* held = of(leader)) held->heard = Clock::now();
}

schema::Result<void> RelayDesk::check(const std::vector<std::string>& endpoints) const {
    std::unordered_set<std::string> seen;
    for (const std::string& endpoint : endpoints) {
        if (auto checked = check_endpoint(endpoint); !checked) return checked;
        if (!seen.insert(endpoint).second)
            return Error{ErrorCode::kUsage,
                         "be the relay to " + endpoint + ": it is named twice; name each once"};
    }
    std::size_t all = endpoints.size();
    for (const Held& held : held_) all += held.relay->size();
    if (held_.size() < kMostRelays && all <= kMostRelayedOfAll) return {};
    return Error{ErrorCode::kRefused, "be the relay to " + std::to_string(endpoints.size()) +
                                          " nodes: this agent is " + std::to_string(held_.size()) +
                                          " others' to " + std::to_string(all - endpoints.size()) +
                                          " nodes already; ask another one"};
}

std::optional<MessageBytes> RelayDesk::open(const std::string& leader, std::uint64_t id,
                                            std::vector<std::string> endpoints) {
    if (Held* before = of(leader)) {
        before->relay->end();
        before->ending = true;
    }
    if (endpoints.empty()) return pack(id, fbs::RelayOpenReplyT{});
    if (auto checked = check(endpoints); !checked) return pack(id, error_reply(checked.error()));
    auto relay = std::make_unique<Relay>(service_, context_, outbox_, leader, std::move(endpoints));
    if (auto begun = relay->begin(id); !begun) return pack(id, error_reply(begun.error()));
    Held& held = held_.emplace_back();
    held.relay = std::move(relay);
    held.heard = Clock::now();
    return std::nullopt;
}

std::optional<MessageBytes> RelayDesk::take(const std::string& leader, fbs::MessageT message) {
    if (auto* wanted = content_as<fbs::RelayOpenRequestT>(message))
        return open(leader, message.id, std::move(wanted->endpoints));
    const bool clocks = message.content.type == fbs::Content::RelayClocksRequest;
    const std::uint64_t id = message.id;
    Held* held = of(leader);
    if (held != nullptr && held->relay->take(std::move(message))) return std::nullopt;
    const Error error =
        held == nullptr
            ? Error{ErrorCode::kNothingMatched, kNoneOpen}
            : Error{ErrorCode::kRefused, "pass on a message: too many wait here; ask less often"};
    if (clocks) return pack(id, error_reply(error));
    fbs::RelayReplyT reply;
    reply.over = error.message;
    return pack(0, std::move(reply));
}

void RelayDesk::look() {
    for (Held& held : held_) {
        if (held.ending || Clock::now() - held.heard < silence_) continue;
        spdlog::warn(
            "no longer the relay to {} nodes: their leader has not been heard of for {} ms",
            held.relay->size(), silence_.count());
        held.relay->end();
        held.ending = true;
    }
    std::erase_if(held_, [](const Held& held) { return held.relay->over(); });
}

}  // namespace ringside::agent
