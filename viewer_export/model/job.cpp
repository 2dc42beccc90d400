#include "viewer_export/model/job.hpp"

#include <algorithm>
#include <cmath>

namespace ringside::viewer_export::model {
namespace {

__extension__ using Wide = __int128;

/// No time of a dump is beyond that, whatever its writer claims: so the difference of two fits.
constexpr std::int64_t kMostNs = 4'000'000'000'000'000'000;

std::int64_t bounded(Wide ns) {
    return static_cast<std::int64_t>(std::clamp<Wide>(ns, -kMostNs, kMostNs));
}

/// @return `from` and as many nanoseconds more
std::int64_t moved(Wide from, double ns) {
    constexpr auto kMost = static_cast<double>(kMostNs);
    // What is no number is as far away as can be.
    const double step = ns < 2 * kMost ? std::max(ns, -2 * kMost) : 2 * kMost;
    return bounded(from + std::llround(step));
}

}  // namespace

Index Names::add(std::string_view text) {
    const auto found = index_.find(text);
    if (found != index_.end()) return found->second;
    texts_.emplace_back(text);
    const auto index = static_cast<Index>(texts_.size() - 1);
    index_.emplace(texts_.back(), index);
    return index;
}

Index Names::find(std::string_view text) const {
    const auto found = index_.find(text);
    return found == index_.end() ? kNone : found->second;
}

const std::string& Names::operator[](Index index) const {
    static const std::string kNothing;
    return index < texts_.size() ? texts_[index] : kNothing;
}

std::int64_t Calibration::node_ns(std::uint64_t ticks) const {
    // A double holds the nanoseconds of eleven days exactly enough: the reference is taken near the capture.
    const auto delta = static_cast<std::int64_t>(ticks - reference_ticks);
    return moved(reference_ns, static_cast<double>(delta) * (1e9 / ticks_per_second));
}

std::int64_t ClockCorrection::leader_ns(std::int64_t node_ns) const {
    const auto since = static_cast<double>(Wide{node_ns} - reference_node_ns);
    return moved(Wide{node_ns} + offset_ns, drift_ppb * since / 1e9);
}

std::string Process::command() const {
    if (command_line.empty()) return executable;
    std::string result;
    for (const std::string& word : command_line) {
        if (!result.empty()) result += ' ';
        result += word;
    }
    return result;
}

std::uint64_t Job::ranges() const {
    std::uint64_t count = 0;
    for (const Lane& lane : lanes) count += lane.ranges.size();
    return count;
}

std::int64_t Job::clock_bound_ns() const {
    std::int64_t bound = 0;
    for (const Node& node : nodes) {
        if (node.has_clock) bound = std::max(bound, node.clock.bound_ns);
    }
    return bound;
}

}  // namespace ringside::viewer_export::model
