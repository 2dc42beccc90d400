// Ranges as the GPU ran them: from the begin of the first work that a range launched to the end of its last one, a stream at a time. What nsys calls
// projected NVTX ranges, and Kineto gpu_user_annotation.
//
//   thread     [ outer     [ inner      ] ]
//                launch A    launch B, C
//   stream 7                [ A ]   [ B ]         outer: A.begin .. B.end, inner: B
//   stream 20                          [ C ]      outer: C, inner: C
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "viewer_export/model/job.hpp"
#include "viewer_export/model/progress.hpp"

namespace ringside::viewer_export::model {

/// One range on one stream of one device.
struct Projection {
    std::int64_t begin_ns;
    std::int64_t end_ns;
    Index lane;
    Index range;  ///< of the lane
    std::uint32_t device;
    std::uint32_t stream;
    std::uint32_t kernels;
    std::uint32_t copies;  ///< and memsets

    std::int64_t duration_ns() const { return end_ns - begin_ns; }
};

/// All ranges and operators, ended or not, around whose thread's calls work came to be: those in the range itself and those in what lies in it. By process,
/// device, stream and begin, outer before inner. A range that may end on another thread has none: which launches were its own, nobody knows.
/// Loglinear; memory is the result's.
/// @param wanted  empty: all; others have no projection of their own
std::vector<Projection> project_ranges(const Job& job, const Tell& tell = {},
                                       const std::function<bool(const Range&)>& wanted = {});

}  // namespace ringside::viewer_export::model
