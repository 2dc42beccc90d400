// A job index (.rsj): one frame, verified.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "schema/job_generated.h"
#include "schema/result.hpp"

namespace ringside::viewer_export::load {

/// Owns the index's bytes.
class JobIndexFile {
public:
    /// @errors Input: not readable, not an index, damaged; Refused: from a newer version
    static schema::Result<JobIndexFile> open(const std::filesystem::path& path);
    /// @param flatbuffer  a JobIndex without a frame; copied
    /// @errors as open()
    static schema::Result<JobIndexFile> from_memory(std::span<const std::uint8_t> flatbuffer);

    const fbs::JobIndex& index() const { return *index_; }

private:
    static schema::Result<JobIndexFile> parse(std::span<const std::uint8_t> flatbuffer,
                                              const std::string& name);

    std::vector<std::uint64_t> storage_;  // words: a FlatBuffer needs their alignment
    const fbs::JobIndex* index_ = nullptr;
};

}  // namespace ringside::viewer_export::load
