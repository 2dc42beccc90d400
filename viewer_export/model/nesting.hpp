// Which range of a lane lies in which, and what each keeps for itself. The rule is torch's (`_populate_cpu_children`): in order of begin, a
// range is the child of the innermost one that holds it wholly; ranges that overlap in part are no relatives.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "viewer_export/model/job.hpp"

namespace ringside::viewer_export::model {

struct Nesting {
    std::vector<Index> parent;          ///< of each range; kNone: none
    std::vector<std::int64_t> self_ns;  ///< duration less the direct children's
    /// Left out: open ranges, and those that `leave_out` named. They are nobody's child and nobody's parent.
    std::vector<bool> left_out;
    /// As torch does: the only child of a range with its own name and request is a wrapper's second entry. It counts as that range.
    std::vector<bool> folded;
};

/// By name: what torch's profiler leaves out (`_filter_name`); its time stays with what called it.
std::vector<bool> left_out(const Job& job);

/// Linear. Self time of a folded range stands with the one it is folded into.
/// @param ranges     of one lane, as Lane::ranges
/// @param leave_out  by name; null: none
Nesting nest(std::span<const Range> ranges, const std::vector<bool>* leave_out = nullptr);

}  // namespace ringside::viewer_export::model
