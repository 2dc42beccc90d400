// Where GPU work was done, as the views of it say: rank, node, pid, device.
#pragma once

#include <cstdint>
#include <string>

#include "viewer_export/model/job.hpp"
#include "viewer_export/out/json_writer.hpp"
#include "viewer_export/out/text_table.hpp"

namespace ringside::viewer_export {

/// Rank, node, pid, GPU. @param device  model::kAllDevices: "all"
Cells place_cells(const model::Job& job, model::Index process, std::uint32_t device);
/// "rank 3 on node1 (pid 4711)".
std::string place_text(const model::Job& job, model::Index process);
/// The same as fields: rank (none where it has none), node, pid, device (a number, or "all").
void write_place(JsonWriter& json, const model::Job& job, model::Index process,
                 std::uint32_t device);

}  // namespace ringside::viewer_export
