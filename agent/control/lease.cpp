#include "agent/control/lease.hpp"

#include <algorithm>
#include <utility>

namespace ringside::agent {
namespace {

constexpr Milliseconds kAgain{100};
constexpr Milliseconds kMostBetweenLooks{1000};

/// The capture that a leader's message is about; 0: it is about none.
std::uint64_t capture_of(fbs::MessageT& message) {
    if (const auto* ping = content_as<fbs::PingRequestT>(message)) return ping->capture_id;
    if (const auto* begin = content_as<fbs::BeginRequestT>(message)) return begin->capture_id;
    if (const auto* stop = content_as<fbs::StopRequestT>(message)) return stop->capture_id;
    if (const auto* far = content_as<fbs::IterationsRequestT>(message)) return far->capture_id;
    return 0;
}

}  // namespace

void Lease::give(std::string identity, std::uint64_t capture_id, SteadyTime now) {
    identity_ = std::move(identity);
    capture_id_ = capture_id;
    heard_ = looked_ = now;
    told_ = {};
}

void Lease::heard(const std::string& identity, fbs::MessageT& message, SteadyTime now) {
    if (capture_id_ == 0) return;
    const bool named = capture_of(message) == capture_id_;
    // Leaders of before pings named the capture: what follows by this connection is theirs, too.
    if (named) identity_ = identity;
    if (named || identity == identity_) heard_ = now;
}

std::optional<std::uint64_t> Lease::run_out(SteadyTime now) {
    // Where this agent was stopped, or its machine had no time for it, it was not the leader that was silent.
    const SteadyTime looked = std::exchange(looked_, now);
    heard_ +=
        std::max(now - looked - std::min(length_, kMostBetweenLooks), SteadyTime::duration(0));
    if (capture_id_ == 0 || now - heard_ < length_ || now - told_ < kAgain) return std::nullopt;
    told_ = now;
    return capture_id_;
}

}  // namespace ringside::agent
