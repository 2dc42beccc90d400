#include "viewer_export/out/trace_step_spans.hpp"

#include <algorithm>

#include "viewer_export/out/trace_items.hpp"

namespace ringside::viewer_export::trace {

using model::Index;
using model::kNone;

namespace {

std::uint64_t stream_of(const model::GpuWork& work) {
    return std::uint64_t{work.device} << 32 | work.stream;
}

}  // namespace

StepSpans::StepSpans(const model::Job& job, const model::Steps* steps)
    : job_(job), steps_(steps), seen_(steps == nullptr ? 0 : steps->count) {}

/// Moves to the step at `ns`.
bool StepSpans::find(std::int64_t ns) {
    const auto is_at = [&](std::size_t step) {
        const model::Step at = steps_->at(job_, step);
        return at.begin_ns <= ns && ns < at.end_ns;
    };
    if (is_at(now_)) return true;
    if (now_ + 1 < steps_->count && is_at(now_ + 1)) return ++now_, true;
    const auto first = job_.values.begin() + steps_->first;
    const auto after =
        std::partition_point(first, first + steps_->count + 1,
                             [&](const model::Value& value) { return value.ns <= ns; });
    if (after == first || after == first + steps_->count + 1) return false;
    now_ = static_cast<std::size_t>(after - first) - 1;
    return true;
}

StepSpans::Streams StepSpans::streams_of(const model::Step& step) const {
    Streams streams;
    const auto [first, last] = of_process(job_.gpu_calls, steps_->process);
    const auto begin = job_.gpu_calls.begin();
    for (auto call = std::partition_point(
             begin + first, begin + last,
             [&](const model::GpuCall& each) { return each.begin_ns < step.begin_ns; });
         call != begin + last && call->begin_ns < step.end_ns; ++call) {
        for (Index i = call->first_work; i != kNone; i = job_.gpu_work[i].next_work) {
            const model::GpuWork& work = job_.gpu_work[i];
            const std::int64_t end_ns = std::max(work.begin_ns, work.end_ns);
            const auto [at, added] = streams.try_emplace(stream_of(work), end_ns);
            if (!added) at->second = std::max(at->second, end_ns);
        }
    }
    return streams;
}

std::optional<StepSpans::Span> StepSpans::begun_by(const model::GpuWork& work) {
    if (steps_ == nullptr || !work.on_device() || work.call == kNone ||
        !find(job_.gpu_calls[work.call].begin_ns))
        return {};
    const model::Step step = steps_->at(job_, now_);
    if (!seen_[now_]) under_way_[now_] = streams_of(step);
    seen_[now_] = true;
    const auto streams = under_way_.find(now_);
    if (streams == under_way_.end()) return {};
    const auto stream = streams->second.find(stream_of(work));
    if (stream == streams->second.end()) return {};
    const Span span{work.begin_ns, stream->second, step.boundary};
    streams->second.erase(stream);
    if (streams->second.empty()) under_way_.erase(streams);
    return span;
}

}  // namespace ringside::viewer_export::trace
