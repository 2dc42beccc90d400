// The job as torch's `key_averages().table()` prints it, RPCs and what they ran on other nodes included; and the same rows as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "schema/result.hpp"
#include "viewer_export/model/job.hpp"
#include "viewer_export/model/memory.hpp"
#include "viewer_export/model/progress.hpp"

namespace ringside::viewer_export {

struct TableOptions {
    std::string sort_by = {};  ///< one of table_sort_keys(); empty: as registered (by first begin)
    std::size_t row_limit = 100;  ///< 0: all
    bool full_names = false;      ///< else names are cut to 52 characters and `...`
    bool internal = false;        ///< torch's own messages too
    model::Tell tell = {};        ///< ranges added up
};

/// One group: (name, node id, CPU or device), and what became of its calls.
struct TableRow {
    std::string name;  ///< with its suffix, uncut
    int node_id = -1;  ///< torch's worker id of the process where it ran
    bool is_async = false;
    bool on_device = false;  ///< kernels, copies, memsets
    std::uint64_t count = 0;
    std::int64_t self_cpu_ns = 0;
    std::int64_t cpu_ns = 0;
    std::int64_t self_cuda_ns =
        0;                     ///< of the time that devices were busy: sums up over device rows
    std::int64_t cuda_ns = 0;  ///< durations
    model::MemoryBytes memory = {};
    model::MemoryBytes self_memory = {};
    std::string input_shapes;  ///< as Python writes a list of lists; empty: unknown, or none
    std::int64_t first_begin_ns = 0;
    std::vector<model::Index> attributes = {};  ///< Job::attributes that its events have, each once
};

/// Which of torch's columns there are beside those of the CPU's time, by what torch has: memory where it was asked for on any node, a device's where any
/// row has time of it, or took memory of it.
struct TableColumns {
    bool memory = false;
    bool cuda = false;
    bool cuda_memory = false;
};
TableColumns table_columns(const model::Job& job, const std::vector<TableRow>& rows);

/// What the footer says.
struct TableSums {
    std::int64_t self_cpu_ns = 0;
    std::int64_t self_cuda_ns =
        0;  ///< of device rows, as in torch: those of the CPU say for whom they ran
};
TableSums table_sums(const std::vector<TableRow>& rows);

/// @return the names that sort_by takes
const std::vector<std::string_view>& table_sort_keys();

/// All groups in the order asked for; row_limit does not apply.
/// @errors Usage: an unknown sort key; the message lists them
schema::Result<std::vector<TableRow>> table_rows(const model::Job& job,
                                                 const TableOptions& options);

/// Torch's table, then our footer: RPCs, events, what was lost, clocks.
/// @errors Usage: as table_rows
schema::Result<std::string> render_table(const model::Job& job, const TableOptions& options);

/// The same as one JSON object: rows (cut by row_limit; times in us), totals, nodes.
/// @errors Usage: as table_rows
schema::Result<std::string> table_json(const model::Job& job, const TableOptions& options);

}  // namespace ringside::viewer_export
