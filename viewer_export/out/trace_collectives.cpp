#include "viewer_export/out/trace_collectives.hpp"

#include <algorithm>

#include "viewer_export/out/collectives_view.hpp"

namespace ringside::viewer_export::trace {

using model::Arrival;
using model::Index;
using model::kNone;

TraceCollectives::TraceCollectives(const model::Job& job, const std::vector<bool>& drawn,
                                   std::uint64_t first_arrow)
    : job_(job),
      drawn_(drawn),
      first_arrow_(first_arrow),
      all_(model::join_collectives(job)),
      collective_(all_.arrivals.size()) {
    if (all_.all.empty()) return;
    ranges_.resize(job.lanes.size());
    for (Index i = 0; i < all_.all.size(); ++i) {
        const model::Collective& of = all_.all[i];
        std::fill_n(collective_.begin() + of.first, of.count, i);
    }
    for (Index i = 0; i < all_.arrivals.size(); ++i) {
        const Arrival& arrival = all_.arrivals[i];
        if (arrival.lane != kNone) {
            ranges_[arrival.lane].emplace_back(arrival.event, i);
        } else {
            asyncs_.resize(job.asyncs.size(), kNone);
            asyncs_[arrival.event] = i;
        }
    }
    for (auto& each : ranges_) std::sort(each.begin(), each.end());
}

Index TraceCollectives::of_range(Index lane, Index range) const {
    if (lane >= ranges_.size() || ranges_[lane].empty()) return kNone;
    const auto& known = ranges_[lane];
    const auto at = std::lower_bound(known.begin(), known.end(), std::pair(range, Index{0}));
    return at == known.end() || at->first != range ? kNone : at->second;
}

std::string TraceCollectives::id(Index arrival) const {
    return collectives::id_text(all_, collective(arrival));
}

std::int64_t TraceCollectives::late_ns(Index arrival) const {
    return all_.arrivals[arrival].begin_ns - all_.begin(collective(arrival))->begin_ns;
}

std::string TraceCollectives::last(Index arrival) const {
    const model::Collective& of = collective(arrival);
    if (!of.complete) return {};
    const Arrival* const last = all_.last(of);
    return last == nullptr ? "undetermined"
                           : collectives::member_text(job_, last->process, last->rank);
}

/// From the last arrival to the end of one that waited for it; who left before that did not wait.
std::optional<Flow> TraceCollectives::arriving(Index at, Index last) const {
    const Arrival& to = all_.arrivals[at];
    const Arrival& from = all_.arrivals[last];
    const std::int64_t ns = to.end_ns - 1;
    if (!collective(at).last_known || to.end != model::End::kEnded || ns <= from.begin_ns ||
        !drawn_[to.process] || !drawn_[from.process])
        return {};
    return Flow{"collective", first_arrow_ + at, ns, false, true};
}

}  // namespace ringside::viewer_export::trace
