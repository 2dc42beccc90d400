// The job index: a joined capture's calls in frames, as they come, and a last frame with all else (schema/README.md, "A job index").
#pragma once

#include <cstdint>
#include <memory>
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

/// Takes calls and writes them a frame at a time: to `<directory>/job.rsj`, under a temporary name until it is whole, or into memory.
class IndexWriter final : public CallSink {
public:
    /// @param directory  open, and not needed afterwards
    /// @param shown      its path
    /// @errors Internal: no file can be made there
    static schema::Result<std::unique_ptr<IndexWriter>> create(int directory,
                                                               const std::string& shown);
    /// @param directory  exists
    static schema::Result<std::unique_ptr<IndexWriter>> create(const std::string& directory);
    /// Into memory: the same bytes as in a file.
    IndexWriter() = default;
    /// Without finish(): nothing is left behind.
    ~IndexWriter() override;
    IndexWriter(const IndexWriter&) = delete;
    IndexWriter& operator=(const IndexWriter&) = delete;

    void add(const fbs::Call& call) override;

    /// The last frame, and the final name, which takes the place of an index that is there. Once.
    /// @return the path; nothing in memory
    /// @errors Internal: this or an earlier write failed; nothing is left behind. Input: more processes than a frame holds
    schema::Result<std::string> finish(const JobHeader& header, std::span<const NodeCapture> nodes,
                                       const JoinCounts& counts);

    std::uint64_t calls() const { return calls_; }
    /// In memory, after finish().
    std::vector<std::uint8_t> take_bytes() { return std::move(bytes_); }

private:
    void flush();
    void append(std::span<const std::uint8_t> body);
    bool write(const void* data, std::size_t size);

    std::string path_;  // empty: in memory
    int directory_ = -1;
    int fd_ = -1;
    int error_ = 0;  // errno of the write that failed
    std::uint64_t calls_ = 0;
    std::uint32_t frames_ = 0;
    std::vector<fbs::Call> waiting_;
    std::vector<std::uint8_t> bytes_;
};

}  // namespace ringside::agent
