// Ranges as the GPU ran them, added up by name: nsys' NVTX GPU Projection Summary, a rank, a device and a stream a row.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "schema/result.hpp"
#include "viewer_export/model/job.hpp"
#include "viewer_export/model/progress.hpp"

namespace ringside::viewer_export {

struct RangesOptions {
    std::string sort_by = "gpu_time_total";  ///< one of ranges_sort_keys(), the greatest first
    std::size_t row_limit = 100;             ///< 0: all
    bool full_names = false;                 ///< else names are cut to 52 characters and `...`
    bool annotations = false;                ///< without frameworks' operators
    model::Tell tell = {};
};

/// All ranges of one name on one stream of one device of one process.
struct RangesRow {
    model::Index name;  ///< Job::names
    model::Index process;
    std::uint32_t device;
    std::uint32_t stream;
    std::uint64_t count = 0;  ///< of ranges that launched something there
    std::int64_t gpu_ns = 0;  ///< from first work to last, added up
    std::int64_t min_ns = 0;
    std::int64_t max_ns = 0;
    std::int64_t cpu_ns = 0;  ///< of the same ranges, on their threads
    std::uint64_t kernels = 0;
    std::uint64_t copies = 0;  ///< and memsets

    double gpu_each_ns() const { return static_cast<double>(gpu_ns) / static_cast<double>(count); }
};

/// @return the names that sort_by takes
const std::vector<std::string_view>& ranges_sort_keys();

/// In the order asked for; row_limit does not apply.
/// @errors Usage: an unknown sort key; the message lists them
schema::Result<std::vector<RangesRow>> ranges_rows(const model::Job& job,
                                                   const RangesOptions& options);
/// @errors Usage: as ranges_rows
schema::Result<std::string> render_ranges(const model::Job& job, const RangesOptions& options);
/// @errors Usage: as ranges_rows
schema::Result<std::string> ranges_json(const model::Job& job, const RangesOptions& options);

}  // namespace ringside::viewer_export
