// The engine's answer to how far the iterations of its running capture are.
#include "agent/capture/engine_impl.hpp"
#include "agent/capture/iterations.hpp"
#include "agent/capture/words.hpp"

namespace ringside::agent {

std::vector<TrackedProcess*> EngineImpl::captured() const {
    std::vector<TrackedProcess*> processes;
    for (const auto& process : table_.all()) {
        if (process->in_capture && (!excerpt_ || excerpt_->excerpt.index_of(process->index)))
            processes.push_back(process.get());
    }
    return processes;
}

Result<IterationProgress> EngineImpl::iterations(std::uint64_t capture_id) const {
    const Turn turn(*this);
    if (excerpt_ && excerpt_->request.id == capture_id) {
        return iteration_progress(captured(), excerpt_->request.iterations, excerpt_->instant_ticks,
                                  calibration_);
    }
    if (!runs(capture_id)) return no_such_capture(capture_id, options_.node);
    return iteration_progress(captured(), capture_->request().iterations, capture_->range().start,
                              calibration_);
}

}  // namespace ringside::agent
