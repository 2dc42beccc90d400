// Tasks of the job on this node for which no process speaks: told by the notes that their launcher's side leaves (schema/task_note.hpp).
#pragma once

#include <functional>
#include <vector>

#include "agent/attach/task_notes.hpp"
#include "agent/capture/engine.hpp"

namespace ringside::agent {

/// A note says what keeps the preload out: so it is. It says nothing, and nobody has its pid or its rank: no word from it. A step
/// has ranks on this node that have not even left a note: another user's, or started without `ringside wrap`.
/// @param is_seen  whether some process of the directory fits
/// @return their reports, by rank, each NotInjected; those that have just been started are given time
std::vector<ProcessReport> unseen_tasks(const std::vector<FoundNote>& notes,
                                        const std::function<bool(const Selection&)>& is_seen);

}  // namespace ringside::agent
