// The join without agents: halves out of dumps as they are read, clocks out of the calls between them, through the leader's own library.
//
//   dumps, once  -> processes, their names, a part of the calls -> clocks
//   dumps, again -> records by time, all nodes together -> agent::Join -> agent::IndexWriter
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "agent/correlate/job_writer.hpp"
#include "schema/result.hpp"

namespace ringside::tools {

struct OfflineJoin {
    std::string path;  ///< of the index; in memory: none
    std::uint64_t halves = 0;
    std::size_t most_open = 0;  ///< halves that were kept at once
    agent::JoinCounts counts;
};

/// @param corrected  false: for tests and --no-clock-correction, times of each node's own clock
/// @param index      takes the calls; finished
/// @errors as viewer_export::rpc_records() and IndexWriter::finish()
schema::Result<OfflineJoin> join_offline(const std::vector<std::filesystem::path>& dumps,
                                         bool corrected, agent::IndexWriter& index);

}  // namespace ringside::tools
