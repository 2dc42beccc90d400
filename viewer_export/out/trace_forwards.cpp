#include "viewer_export/out/trace_forwards.hpp"

#include <algorithm>

namespace ringside::viewer_export::trace {

using model::Index;

namespace {

/// Ranges from one mark to the next, a lane's; what is looked through.
constexpr Index kBetween = 64;

}  // namespace

bool is_forward(const model::Range& range) {
    return range.is_operator && range.argument >= 0 &&
           range.detail == static_cast<std::uint8_t>(schema::TorchScope::kFunction);
}

bool is_backward(const model::Range& range) {
    return range.is_operator && range.argument >= 0 && range.forward_thread != 0 &&
           range.detail == static_cast<std::uint8_t>(schema::TorchScope::kBackward);
}

ForwardIndex::ForwardIndex(const model::Job& job, const std::vector<bool>& drawn) : job_(job) {
    for (const model::Lane& lane : job.lanes) {
        if (drawn[lane.process] && std::any_of(lane.ranges.begin(), lane.ranges.end(), is_backward))
            marks_[lane.process];
    }
    for (Index i = 0; i < job.lanes.size(); ++i) {
        const auto process = marks_.find(job.lanes[i].process);
        if (process != marks_.end()) add(i, process->second);
    }
    for (auto& [process, marks] : marks_) {
        std::sort(marks.begin(), marks.end(),
                  [](const Mark& a, const Mark& b) { return a.key < b.key; });
    }
}

/// A mark also where a sequence goes back, which none does but a damaged dump's.
void ForwardIndex::add(Index lane, std::vector<Mark>& marks) const {
    const auto& ranges = job_.lanes[lane].ranges;
    const model::Range* before = nullptr;
    Index marked = 0;
    for (Index i = 0; i < ranges.size(); ++i) {
        if (!is_forward(ranges[i])) continue;
        if (before == nullptr || i - marked >= kBetween || key_of(ranges[i]) < key_of(*before)) {
            marks.push_back({key_of(ranges[i]), {lane, i}});
            marked = i;
        }
        before = &ranges[i];
    }
}

std::optional<RangeAt> ForwardIndex::behind(const Mark& mark, const Key& sought) const {
    const auto& ranges = job_.lanes[mark.at.lane].ranges;
    const auto end = static_cast<Index>(
        std::min<std::size_t>(ranges.size(), std::size_t{mark.at.range} + kBetween));
    std::optional<RangeAt> found;
    for (Index i = mark.at.range; i < end; ++i) {
        if (!is_forward(ranges[i])) continue;
        const Key key = key_of(ranges[i]);
        if (key >= sought) break;
        if (key.thread == sought.thread && key.sequence == sought.sequence)
            found = RangeAt{mark.at.lane, i};
    }
    return found;
}

std::optional<RangeAt> ForwardIndex::of(RangeAt backward) const {
    const auto process = marks_.find(job_.lanes[backward.lane].process);
    if (process == marks_.end()) return {};
    const std::vector<Mark>& marks = process->second;
    const model::Range& range = job_.lanes[backward.lane].ranges[backward.range];
    const Key sought{range.forward_thread, range.argument, range.begin_ns};
    auto mark = std::partition_point(marks.begin(), marks.end(),
                                     [&](const Mark& each) { return each.key < sought; });
    // A thread's lanes follow each other; where their sequences overlap one mark is not enough.
    for (int tries = 4; mark != marks.begin() && tries > 0; --tries) {
        if (const auto found = behind(*--mark, sought)) return found;
        if (mark->key.thread != sought.thread) break;
    }
    return {};
}

}  // namespace ringside::viewer_export::trace
