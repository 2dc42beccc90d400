// How many pings make an epoch: enough that one of them was quick. The sending is a callback, so that the logic is tried without sockets.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "agent/clock/model.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

/// Sends one ping and waits for its answer; the callback reads the leader's clock right before and right after.
using SendPing = std::function<schema::Result<PingSample>()>;

struct PingPlan {
    std::uint32_t least = 8;
    std::uint32_t most = 128;
    /// Stop after this many in a row that were no quicker than the quickest by more than `gain`.
    std::uint32_t idle = 24;
    double gain = 0.02;
};

/// Pings until further ones no longer help.
/// @return the samples, at least one
/// @errors whatever the first failing ping says, if none came before it; a later failure ends the epoch
/// @thread one caller
schema::Result<std::vector<PingSample>> ping_epoch(const SendPing& send, const PingPlan& plan);

}  // namespace ringside::agent
