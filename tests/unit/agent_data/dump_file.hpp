// A dump taken apart for the tests, with schema's decoder: frames checked, chunks verified, blocks decoded, accounts at hand.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "schema/dump_generated.h"
#include "schema/record.hpp"

namespace ringside::agent::testing {

struct DumpRecord {
    std::uint32_t process = 0;
    std::uint32_t lane = 0;
    std::uint64_t position = 0;
    schema::RecordHeader header;
    std::vector<std::uint64_t> words;
    std::string name;  ///< as known when the block was read
};

struct DumpFile {
    bool good = false;  ///< every frame whole and verified, header first, footer last
    std::string fault;
    fbs::FileHeaderT header;
    fbs::FooterT footer;
    std::uint32_t packed = 0;              ///< chunks that were compressed
    std::vector<fbs::ProcessT> processes;  ///< the last chunk of each, by index
    std::vector<DumpRecord> records;
    std::vector<std::uint64_t> unnamed;  ///< positions of records whose name came later or never
    /// by (process, lane): of the last block
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<fbs::OpenRange>> open;
    std::vector<fbs::ContextT> contexts;                             ///< of each block in order
    std::vector<std::pair<std::uint64_t, std::uint64_t>> positions;  ///< of each block
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> names;

    std::uint64_t kept(std::uint32_t process, std::uint32_t lane) const;
};

DumpFile read_dump(const std::string& path);

}  // namespace ringside::agent::testing
