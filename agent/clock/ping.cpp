#include "agent/clock/ping.hpp"

#include <utility>

namespace ringside::agent {

schema::Result<std::vector<PingSample>> ping_epoch(const SendPing& send, const PingPlan& plan) {
    std::vector<PingSample> samples;
    std::int64_t best = 0;
    std::uint32_t idle = 0;
    while (samples.size() < plan.most && (samples.size() < plan.least || idle < plan.idle)) {
        schema::Result<PingSample> sample = send();
        if (!sample) {
            if (samples.empty()) return sample.error();
            break;
        }
        const std::int64_t rtt = sample->rtt_ns();
        const bool better = samples.empty() ||
                            static_cast<double>(rtt) < static_cast<double>(best) * (1 - plan.gain);
        if (better) best = rtt;
        idle = better ? 0 : idle + 1;
        samples.push_back(*sample);
    }
    return samples;
}

}  // namespace ringside::agent
