// What the captures cost the job, out of the dumps' receipts: a line for people, fields for programs. Used by the table and both JSON
// writers.
#pragma once

#include <string>

#include "viewer_export/model/job.hpp"
#include "viewer_export/out/json_writer.hpp"

namespace ringside::viewer_export {

/// "Cost: 209 records x 19.1 ns = 4.0us of 3 processes' 1.500s, 0.0003% (an estimate); ..."; empty where no dump has a receipt.
std::string cost_line(const model::Job& job);

/// The key "perturbation" and its object, with each process's start; nothing where the node's dump has no receipt.
void write_cost(JsonWriter& json, const model::Job& job, model::Index node);

}  // namespace ringside::viewer_export
