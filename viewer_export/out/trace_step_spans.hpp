// A process's iterations as its streams ran them: from the begin of the first work that was launched within one, on whatever thread, to the end of the last
// one. Torch's profiler draws ProfilerStep#N so. Found as the work is walked: an iteration's calls are looked at when the first of its work comes, and kept
// are the streams on which that has not begun yet, and a bit an iteration.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "viewer_export/model/job.hpp"
#include "viewer_export/model/steps.hpp"

namespace ringside::viewer_export::trace {

class StepSpans {
public:
    /// @param steps  the process's iterations, borrowed; null: it has none
    StepSpans(const model::Job& job, const model::Steps* steps);

    struct Span {
        std::int64_t begin_ns;
        std::int64_t end_ns;
        model::Index boundary;  ///< Job::values: what begins the iteration
    };
    /// @param work  the process's, in the order of begins
    /// @return its iteration on its stream, where this is the first of it there
    std::optional<Span> begun_by(const model::GpuWork& work);

private:
    using Streams =
        std::unordered_map<std::uint64_t, std::int64_t>;  ///< by device and stream: the end
    bool find(std::int64_t ns);
    Streams streams_of(const model::Step& step) const;

    const model::Job& job_;
    const model::Steps* steps_;
    std::size_t now_ = 0;  ///< the step that was found last
    std::vector<bool> seen_;
    std::unordered_map<std::size_t, Streams> under_way_;  ///< by step
};

}  // namespace ringside::viewer_export::trace
