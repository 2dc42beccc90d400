// A capture of N iterations: what of each process lies outside of them is left out (schema/README.md, "Iterations").
#include <vector>

#include "viewer_export/load/builder.hpp"

namespace ringside::viewer_export::load {

using model::Index;
using model::kNone;

namespace {

/// Of a range or a half. Around the interval's begin or end it is inside, whole.
bool is_outside(const model::Iterations& kept, std::uint64_t begin, std::uint64_t end, bool ended) {
    if (begin >= kept.end_ticks) return true;
    return begin < kept.begin_ticks && ended && end <= kept.begin_ticks;
}

/// Of a mark, a boundary or a counter. The last iteration's end is a boundary, too.
bool is_outside(const model::Iterations& kept, const model::Value& value) {
    const auto ticks = static_cast<std::uint64_t>(value.ns);
    if (value.kind == schema::RecordKind::kIteration && ticks == kept.end_ticks) return false;
    return ticks < kept.begin_ticks || ticks >= kept.end_ticks;
}

template <class Event>
bool range_outside(const model::Iterations& kept, const Event& event) {
    return is_outside(kept, static_cast<std::uint64_t>(event.begin_ns),
                      static_cast<std::uint64_t>(event.end_ns), event.end == model::End::kEnded);
}

}  // namespace

/// Ranges, asynchronous ones and values; still in ticks.
void JobBuilder::leave_out_events() {
    std::uint64_t& left_out = job_.totals.outside_iterations;
    for (model::Lane& lane : job_.lanes) {
        const auto& kept = job_.process_of(lane).iterations;
        if (!kept) continue;
        left_out += std::erase_if(
            lane.ranges, [&](const model::Range& range) { return range_outside(*kept, range); });
    }
    const auto kept_of = [&](Index lane) -> const auto& {
        return job_.process_of_lane(lane).iterations;
    };
    left_out += std::erase_if(job_.asyncs, [&](const model::AsyncRange& range) {
        const auto& kept = kept_of(range.lane);
        return kept && range_outside(*kept, range);
    });
    left_out += std::erase_if(job_.values, [&](const model::Value& value) {
        const auto& kept = kept_of(value.lane);
        return kept && is_outside(*kept, value);
    });
}

/// Calls as ranges, work with its call, or by its own times where that is in no dump. Still in ticks.
void JobBuilder::leave_out_gpu() {
    const auto goes = [&](const auto& event) {
        const auto& kept = job_.processes[event.process].iterations;
        return kept && is_outside(*kept, static_cast<std::uint64_t>(event.begin_ns),
                                  static_cast<std::uint64_t>(event.end_ns), true);
    };
    std::vector<Index> stays(job_.gpu_calls.size(), kNone);
    Index next = 0;
    for (Index i = 0; i < stays.size(); ++i) {
        if (!goes(job_.gpu_calls[i])) stays[i] = next++;
    }
    std::uint64_t& left_out = job_.totals.outside_iterations;
    left_out += std::erase_if(job_.gpu_work, [&](model::GpuWork& work) {
        if (work.call == kNone) return goes(work);
        work.call = stays[work.call];
        return work.call == kNone;
    });
    left_out += std::erase_if(job_.gpu_calls, goes);
}

/// Halves stay where they are, for others point to them, and are not shown. The caller's iterations decide, so that no call is shown by half.
void JobBuilder::leave_out_calls() {
    const auto is_record = [&](Index half) {
        return half != kNone && job_.halves[half].position != model::kNoPosition;
    };
    for (const model::Call& call : job_.calls) {
        const Index decides = is_record(call.client) ? call.client : call.server;
        if (!is_record(decides)) continue;
        const model::Half& half = job_.halves[decides];
        const auto& kept = job_.processes[half.process].iterations;
        if (!kept || !is_outside(*kept, half.begin_ticks, half.end_ticks, half.ended())) continue;
        for (const Index side : {call.client, call.server}) {
            if (!is_record(side)) continue;
            job_.halves[side].outside = true;
            ++job_.totals.outside_iterations;
        }
    }
}

}  // namespace ringside::viewer_export::load
