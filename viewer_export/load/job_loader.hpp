// Loads a job: dumps and the index that joins them, into the model that views read. The way in for the command.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "schema/result.hpp"
#include "viewer_export/model/job.hpp"
#include "viewer_export/model/progress.hpp"

namespace ringside::viewer_export {

struct LoadRequest {
    /// Directories (their *.rsd and job.rsj), or files of either kind.
    std::vector<std::filesystem::path> inputs;
    /// Node times corrected to the leader's by the index; false: each node's own clock.
    bool corrected = true;
    /// A job index as in a file, made by an offline join: used instead of any file. Borrowed for the call.
    std::span<const std::uint8_t> index = {};
    model::Tell tell = {};  ///< bytes read, then events put in order
};

/// Reads everything that is readable. What is damaged is loaded up to the damage and noted in Job::damage: the caller decides what that
/// means. Without an index halves stay unjoined and node clocks uncorrected.
/// @errors Input: nothing there, not readable, not a dump, from a newer version, no whole chunk
/// @thread thread-safe
schema::Result<model::Job> load_job(const LoadRequest& request);

/// Only what the dumps say of their nodes and processes: no event, no index; to tell what became of processes at the end of a capture of any size.
/// @errors as load_job
schema::Result<model::Job> load_processes(const std::vector<std::filesystem::path>& inputs);

/// @return the dumps that load_job() reads for these inputs
/// @errors Input: nothing there, no dump among them
schema::Result<std::vector<std::filesystem::path>> dumps_among(
    const std::vector<std::filesystem::path>& inputs);

}  // namespace ringside::viewer_export
