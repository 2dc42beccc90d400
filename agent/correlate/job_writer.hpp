// The job index: a joined capture as one FlatBuffer in one frame, written beside the leader's dump. The offline join takes the buffer
// alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "agent/correlate/join.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

struct JobHeader {
    std::string job;
    std::string leader;  ///< node name
    std::uint64_t capture_id = 0;
    bool corrected = true;
};

/// @return the JobIndex, without its frame
/// @errors Input: more requests than a frame of 64 MiB holds
/// @thread thread-safe
schema::Result<std::vector<std::uint8_t>> build_job_index(const JobHeader& header,
                                                          std::span<const NodeCapture> nodes,
                                                          const JoinResult& joined);

/// Writes `<directory>/job.rsj`: a temporary name first, then renamed, so that no half-written index stands under the final one.
/// @param directory  exists
/// @return the path
/// @errors Internal: a write failed; nothing is left behind
schema::Result<std::string> write_job_index(const std::string& directory,
                                            std::span<const std::uint8_t> index);

}  // namespace ringside::agent
