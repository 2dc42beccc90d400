// Who waits for whom, as lines and as JSON: beneath `ringside trace` and `ringside rpc`.
#pragma once

#include <string>

#include "viewer_export/model/waits.hpp"
#include "viewer_export/out/json_writer.hpp"

namespace ringside::viewer_export {

/// A line a collective or call that waits, a line a cycle, who never came, and who was killed in a call; empty where there is none of these.
std::string render_waits(const model::Job& job, const model::JobWaits& waits);

/// One JSON object: {threshold_s, waits, cycles, never_came, died}; times in seconds.
void write_waits(JsonWriter& json, const model::Job& job, const model::JobWaits& waits);

}  // namespace ringside::viewer_export
