// A dump that its agent did not end, read back as far as its last whole chunk: what it says of itself, of each process and of each lane,
// so that a successor can go on with it. Its records stay where they are.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/drain/lane_drainer.hpp"
#include "agent/dump/dump_writer.hpp"

namespace ringside::agent {

/// One process's part of it.
struct PartialProcess {
    ProcessFacts facts;
    NamesBatch names;
    std::vector<LaneAccount> accounts;
    std::map<std::uint32_t, LaneCarry> carries;  ///< by lane index
    std::uint64_t bytes = 0;                     ///< of its blocks
};

struct PartialDump {
    bool has_header = false;
    bool has_footer = false;
    DumpHeader header;
    std::vector<PartialProcess> processes;  ///< by their index in the dump
    std::uint64_t bytes = 0;                ///< up to the end of its last whole chunk
    std::uint64_t cut = 0;  ///< what stands behind that: a chunk that was not written whole
};

/// @param file  open for reading
/// @errors Input: its chunks contradict each other, or it is of a newer version
schema::Result<PartialDump> read_partial(int file, const std::string& path);

}  // namespace ringside::agent
