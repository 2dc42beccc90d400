// The notes that launchers' tasks have left in the job directory (schema/task_note.hpp): read anew each time, few and small.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schema/task_note.hpp"

namespace ringside::agent {

struct FoundNote {
    schema::TaskNote note;
    bool runs = false;        ///< its task does: somebody holds the lock
    std::int64_t age_ms = 0;  ///< since it was written
    std::string step{};       ///< of the launcher's
};

/// @param directory  the job directory, ours alone; what is none of ours in it is passed over
std::vector<FoundNote> find_task_notes(int directory);

}  // namespace ringside::agent
