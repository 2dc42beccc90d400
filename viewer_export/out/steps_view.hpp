// Each iteration as each GPU spent it: computing, communicating, copying, idle; a rank, a device and an iteration a row, then their sums.
#pragma once

#include <cstddef>
#include <string>

#include "viewer_export/model/job.hpp"
#include "viewer_export/model/progress.hpp"

namespace ringside::viewer_export {

struct StepsOptions {
    std::size_t row_limit = 100;  ///< iterations' rows; 0: all
    model::Tell tell = {};        ///< GPU work added up
};

/// The rows, sums, and who is slowest; why there is none, where no GPU work was recorded.
std::string render_steps(const model::Job& job, const StepsOptions& options);

/// The same as one JSON object, with all rows.
std::string steps_json(const model::Job& job, const StepsOptions& options);

/// Why there is no GPU work, in a line.
std::string no_gpu_work(const model::Job& job);

}  // namespace ringside::viewer_export
