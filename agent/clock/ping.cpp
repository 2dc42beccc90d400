#include "agent/clock/ping.hpp"

namespace ringside::agent {

void PingEpoch::add(const PingSample& sample) {
    const std::int64_t rtt = sample.rtt_ns();
    const bool better = samples_.empty() ||
                        static_cast<double>(rtt) < static_cast<double>(best_ns_) * (1 - plan_.gain);
    if (better) best_ns_ = rtt;
    idle_ = better ? 0 : idle_ + 1;
    samples_.push_back(sample);
}

bool PingEpoch::done() const {
    return samples_.size() >= plan_.most || (samples_.size() >= plan_.least && idle_ >= plan_.idle);
}

}  // namespace ringside::agent
