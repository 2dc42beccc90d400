// What became of each process, in words.
#pragma once

#include "agent/capture/tracked_process.hpp"
#include "agent/dump/partial_dump.hpp"

namespace ringside::agent {

/// The report of one process, its verdict included.
/// Its events and losses are the drainer's; of a capture that is cut out of a window they are told apart later.
/// @param capturing  a capture has been on: who did not attach is told so
ProcessReport report_process(const TrackedProcess& process, bool capturing);
/// Of a process whose part stands in the dump of an agent that died, and whose segment is there no more.
ProcessReport report_gone(const PartialProcess& process);
/// The report of a segment that could not be read. Its index is none of the dump's.
ProcessReport report_refused(const schema::SegmentId& id, const std::string& cause);

}  // namespace ringside::agent
