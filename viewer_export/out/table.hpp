// The job as torch's `key_averages().table()` prints it, RPCs and what they ran on other nodes included; and the same rows as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "schema/result.hpp"
#include "viewer_export/model/job.hpp"
#include "viewer_export/model/progress.hpp"

namespace ringside::viewer_export {

struct TableOptions {
    std::string sort_by = {};  ///< one of table_sort_keys(); empty: as registered (by first begin)
    std::size_t row_limit = 100;  ///< 0: all
    bool full_names = false;      ///< else names are cut to 52 characters and `...`
    bool internal = false;        ///< torch's own messages too
    model::Tell tell = {};        ///< ranges added up
};

/// One group: (name, node id), and what became of its calls.
struct TableRow {
    std::string name;  ///< with its suffix, uncut
    int node_id = -1;  ///< torch's worker id of the process where it ran
    bool is_async = false;
    std::uint64_t count = 0;
    std::int64_t self_cpu_ns = 0;
    std::int64_t cpu_ns = 0;
    std::int64_t cpu_memory_bytes = 0;
    std::int64_t self_cpu_memory_bytes = 0;
    std::string input_shapes;  ///< as Python writes a list of lists; empty: unknown, or none
    std::int64_t first_begin_ns = 0;
    std::vector<model::Index> attributes = {};  ///< Job::attributes that its events have, each once
};

/// Whether memory was asked for on any node: then the table has torch's columns of it.
bool has_memory(const model::Job& job);

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
