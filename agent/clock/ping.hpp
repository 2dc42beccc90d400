// How many pings make an epoch: enough that one of them was quick. Who sends them, one after the other, is the caller: many epochs may run beside each other.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/clock/model.hpp"

namespace ringside::agent {

struct PingPlan {
    std::uint32_t least = 8;
    std::uint32_t most = 128;
    /// Stop after this many in a row that were no quicker than the quickest by more than `gain`.
    std::uint32_t idle = 24;
    double gain = 0.02;
};

/// The pings of one node.
/// @thread one caller
class PingEpoch {
public:
    explicit PingEpoch(const PingPlan& plan) : plan_(plan) {}

    void add(const PingSample& sample);
    /// Whether further ones no longer help.
    bool done() const;
    const std::vector<PingSample>& samples() const { return samples_; }

private:
    PingPlan plan_;
    std::vector<PingSample> samples_;
    std::int64_t best_ns_ = 0;
    std::uint32_t idle_ = 0;
};

}  // namespace ringside::agent
