#include "agent/capture/tracked_process.hpp"

namespace ringside::agent {

TrackedProcess::TrackedProcess(std::unique_ptr<MappedSegment> mapped)
    : id(mapped->id()),
      segment(std::move(mapped)),
      life(std::make_unique<ProcessLife>(id, segment->lock_descriptor())),
      drainer(*segment) {
    facts.id = id;
    refresh();
}

void TrackedProcess::refresh() {
    if (segment == nullptr) return;
    if (auto now = segment->facts()) facts = std::move(*now);
}

}  // namespace ringside::agent
