#include "agent/capture/tracked_process.hpp"

#include <algorithm>

#include "schema/sources.hpp"

namespace ringside::agent {

TrackedProcess::TrackedProcess(std::unique_ptr<MappedSegment> mapped)
    : id(mapped->id()),
      segment(std::move(mapped)),
      life(std::make_unique<ProcessLife>(id, segment->lock_descriptor())),
      drainer(*segment) {
    facts.id = id;
    refresh();
}

bool TrackedProcess::must_attach() const {
    return std::any_of(facts.sources.begin(), facts.sources.end(),
                       [](const SourceFacts& source) { return !schema::needs_nobody(source.id); });
}

Candidate TrackedProcess::candidate() const {
    return {static_cast<int>(id.pid), life ? life->host_pid() : 0, facts.rank, facts.executable,
            has_framework()};
}

void TrackedProcess::refresh() {
    if (segment == nullptr) return;
    if (auto now = segment->facts()) facts = std::move(*now);
    if (!in_capture || !attached) return;
    for (const SourceFacts& source : facts.sources) {
        if (source.level == schema::SourceLevel::kOff) continue;
        std::erase_if(reached, [&](const SourceFacts& before) { return before.id == source.id; });
        reached.push_back(source);
    }
}

OpenFacts TrackedProcess::open_at(std::uint64_t ticks) {
    OpenFacts open = alive() ? segment->open_calls(facts.ticks_source) : last_open;
    std::erase_if(open.calls, [&](const OpenCallFacts& call) { return call.begin_ticks > ticks; });
    return open;
}

std::array<std::uint64_t, schema::kLossCounters> TrackedProcess::losses_in_capture() const {
    auto losses = facts.losses;
    for (std::uint32_t i = 0; i < schema::kLossCounters; ++i)
        losses[i] -= std::min(losses[i], losses_before[i]);
    return losses;
}

std::uint64_t passed_over(std::span<const std::uint64_t> losses) {
    using schema::Loss;
    std::uint64_t sum = 0;
    for (const Loss loss : {Loss::kStackTooDeep, Loss::kTableFull, Loss::kLaneRefused,
                            Loss::kReentered, Loss::kGpuDropped}) {
        const auto at = static_cast<std::size_t>(loss);
        sum += at < losses.size() ? losses[at] : 0;
    }
    return sum;
}

std::uint64_t TrackedProcess::passed_over() const {
    return agent::passed_over(losses_in_capture());
}

SegmentFacts TrackedProcess::facts_in_capture() const {
    SegmentFacts told = facts;
    for (SourceFacts& source : told.sources) {
        if (source.level != schema::SourceLevel::kOff) continue;
        const auto was =
            std::find_if(reached.begin(), reached.end(),
                         [&](const SourceFacts& before) { return before.id == source.id; });
        if (was != reached.end()) source = *was;
    }
    return told;
}

}  // namespace ringside::agent
