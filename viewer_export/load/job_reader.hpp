// A job index (.rsj), of version 1 or 2: its frames, verified, and its calls.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "schema/job_generated.h"
#include "schema/result.hpp"
#include "viewer_export/load/mapped_file.hpp"

namespace ringside::viewer_export::load {

/// Owns the index's bytes.
class JobIndexFile {
public:
    /// @errors Input: not readable, not an index, damaged; Refused: from a newer version
    static schema::Result<JobIndexFile> open(const std::filesystem::path& path);
    /// @param bytes  as a file's; copied
    /// @errors as open()
    static schema::Result<JobIndexFile> from_memory(std::span<const std::uint8_t> bytes);

    /// All but the calls.
    const fbs::JobIndex& index() const { return *index_; }
    /// By their begins; in version 1 as they stand, since they say by place which is whose parent.
    const std::vector<const fbs::Call*>& calls() const { return calls_; }
    /// Version 1: the parent of each call, a place in calls() or less than 0. Else empty: keys tell.
    const std::vector<std::int32_t>& parents() const { return parents_; }

private:
    static schema::Result<JobIndexFile> parse(JobIndexFile file,
                                              std::span<const std::uint8_t> bytes,
                                              const std::string& name);
    schema::Result<void> add_frame(std::span<const std::uint8_t> payload, const std::string& name);
    void add_rpcs();
    void sort_calls();

    MappedFile file_;
    std::vector<std::uint64_t> storage_;  // words: a FlatBuffer needs their alignment
    const fbs::JobIndex* index_ = nullptr;
    std::vector<const fbs::Call*> calls_;
    std::vector<fbs::Call> converted_;  // of version 1
    std::vector<std::int32_t> parents_;
};

}  // namespace ringside::viewer_export::load
