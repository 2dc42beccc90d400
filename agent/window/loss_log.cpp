#include "agent/window/loss_log.hpp"

#include <algorithm>

namespace ringside::agent {

void LossLog::note(std::uint32_t process, std::uint64_t now_ticks,
                   const ProcessCounters& counters) {
    auto& notes = processes_[process];
    if (!notes.empty() && notes.back().counters == counters) return;
    notes.push_back({now_ticks, counters});
}

std::vector<LaneLoss> LossLog::within(std::uint64_t start, std::uint64_t stop) const {
    std::vector<LaneLoss> found;
    std::copy_if(
        lanes_.begin(), lanes_.end(), std::back_inserter(found),
        [&](const LaneLoss& loss) { return loss.last_ticks >= start && loss.first_ticks <= stop; });
    return found;
}

ProcessCounters LossLog::at(std::uint32_t process, std::uint64_t ticks) const {
    const auto notes = processes_.find(process);
    if (notes == processes_.end()) return {};
    ProcessCounters counters{};
    for (const Note& note : notes->second) {
        if (note.ticks > ticks) break;
        counters = note.counters;
    }
    return counters;
}

void LossLog::forget_before(std::uint64_t ticks) {
    std::erase_if(lanes_, [&](const LaneLoss& loss) { return loss.last_ticks < ticks; });
    for (auto& [process, notes] : processes_) {
        // The last one before the instant is what was true at it.
        while (notes.size() > 1 && notes[1].ticks <= ticks) notes.pop_front();
    }
}

std::uint64_t LossLog::lost_total() const {
    std::uint64_t records = 0;
    for (const LaneLoss& loss : lanes_) records += loss.records;
    return records;
}

}  // namespace ringside::agent
