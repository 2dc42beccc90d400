// The lines beneath torch's table: what was joined, what is missing, how far the clocks can be trusted. Each says only what is known.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "viewer_export/out/table.hpp"

namespace ringside::viewer_export {

/// As torch: `%.3fus`, from 1e3 us on `%.3fms`, from 1e6 us on `%.3fs`.
std::string format_time(double ns);

/// "torch", "nvtx", ...; "?" for one that this version doesn't know.
const char* source_name(schema::SourceId source);

/// Input shapes, labels and peers of all processes' records that are unknown: the name table was full. The records are there.
std::uint64_t attributes_lost(const model::Job& job);

/// "RPCs: 13 joined, ...".
std::string rpc_line(const model::Job& job, bool internal_shown);
/// "Clocks: ...": how far times of two nodes can be compared.
std::string clock_line(const model::Job& job);

/// One line an element, without newline.
std::vector<std::string> table_footer(const model::Job& job, const std::vector<TableRow>& rows,
                                      const TableOptions& options);

}  // namespace ringside::viewer_export
