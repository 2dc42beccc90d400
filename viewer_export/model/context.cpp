#include "viewer_export/model/context.hpp"

#include <algorithm>

namespace ringside::viewer_export::model {

void ContextTrack::switch_to(std::uint64_t ticks, std::uint64_t position, Context context) {
    // A thread's clock doesn't run backwards; a damaged or hostile dump's may, and the search needs an order.
    if (!switches_.empty()) ticks = std::max(ticks, switches_.back().ticks);
    switches_.push_back({ticks, position, context});
}

Context ContextTrack::Cursor::at(std::uint64_t ticks, std::uint64_t position) {
    const auto& switches = track_->switches_;
    // Events with one begin come outer (later record) first, so the search may have to go back over switches of that same tick.
    while (next_ > 0 && !switches[next_ - 1].holds_for(ticks, position)) --next_;
    while (next_ < switches.size() && switches[next_].holds_for(ticks, position)) ++next_;
    return track_->before(next_);
}

Context ContextTrack::at(std::uint64_t ticks, std::uint64_t position) const {
    const auto after =
        std::partition_point(switches_.begin(), switches_.end(),
                             [&](const Switch& entry) { return entry.holds_for(ticks, position); });
    return before(static_cast<std::size_t>(after - switches_.begin()));
}

}  // namespace ringside::viewer_export::model
