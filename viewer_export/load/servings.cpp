// Which thread worked for which request, from when to when: the stretches of the lanes' contexts, for views that ask how many at once.
#include <algorithm>
#include <tuple>
#include <utility>

#include "viewer_export/load/builder.hpp"

namespace ringside::viewer_export::load {

using schema::ContextState;

/// After the ends are settled: a request that is served to the capture's stop is served to the last evidence of its process.
void JobBuilder::find_servings() {
    for (Index i = 0; i < job_.lanes.size(); ++i) {
        const model::Lane& lane = job_.lanes[i];
        const auto& halves = processes_[lane.process].server_halves;
        const std::uint64_t start = job_.nodes[job_.processes[lane.process].node].start_ticks;
        const auto evidence =
            static_cast<std::uint64_t>(job_.processes[lane.process].last_evidence_ns);
        bool known = false;  // what was before
        lanes_[i].contexts.stretches(
            [&](model::Context context, std::uint64_t from, std::uint64_t to) {
                const bool begin_known =
                    std::exchange(known, context.state != ContextState::kUnknown) && from != 0;
                if (context.state == ContextState::kNone) return;
                Index half = model::kUnknownRequest;
                if (context.state == ContextState::kServing) {
                    const auto found = halves.find(context.key);
                    if (found == halves.end()) return;  // begun before the capture, and nothing ran
                    half = found->second;
                    const model::Half& served = job_.halves[half];
                    if (served.shown()) from = std::max(from, served.begin_ticks);
                    // What a thread does for a request that is answered keeps nobody waiting for it.
                    if (served.shown() && served.ended()) to = std::min(to, served.end_ticks);
                }
                from = std::max(from, start);
                to = std::min(to, evidence);
                if (from < to)
                    job_.servings.push_back({static_cast<std::int64_t>(from),
                                             static_cast<std::int64_t>(to), half, i, begin_known});
            });
    }
    std::sort(job_.servings.begin(), job_.servings.end(),
              [](const model::Serving& a, const model::Serving& b) {
                  return std::tie(a.half, a.begin_ns, a.lane) <
                         std::tie(b.half, b.begin_ns, b.lane);
              });
}

}  // namespace ringside::viewer_export::load
