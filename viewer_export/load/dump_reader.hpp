// One node's dump, chunk by chunk: frames, checksums and FlatBuffers verified, a truncated file read up to its last whole chunk.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schema/dump_generated.h"
#include "schema/result.hpp"
#include "viewer_export/load/frames.hpp"
#include "viewer_export/load/mapped_file.hpp"
#include "viewer_export/model/job.hpp"

namespace ringside::viewer_export::load {

/// A dump's calibration, made usable.
model::Calibration calibration_of(const fbs::FileHeader& header);

class DumpReader {
public:
    /// Maps the file and reads its header.
    /// @errors Input: not readable, not a dump, from a newer version, cut off within its first chunk
    static schema::Result<DumpReader> open(const std::filesystem::path& path);

    const fbs::FileHeader& header() const { return *header_; }
    const std::string& path() const { return path_; }

    /// @return the next chunk after the header, verified and unpacked, valid until the next call; null at the end (or where the damage
    /// begins)
    const fbs::Chunk* next();

    /// Chunks that are packed hold records: next() gives them as they are from now on.
    void pass_over_packed() { unpacks_ = false; }
    /// The next chunk is the one at `offset`, which has been offset() before.
    void seek(std::uint64_t offset) {
        frames_.seek(offset);
        footer_ = false;
    }
    /// What stands before need not stay in memory; it is read again where it is asked for.
    void release_before(std::uint64_t offset) { file_.release_before(offset); }
    /// What the last chunk lies in where it was packed, so that it outlives the next one; null: it lies in the file.
    std::shared_ptr<const std::vector<std::uint8_t>> take_unpacked();

    /// Once next() has returned null: what is wrong with the file.
    std::optional<model::Damage> damage() const;
    /// The footer has been read.
    bool complete() const { return footer_; }
    /// Bytes of the whole chunks read so far, and their number with the header.
    std::uint64_t offset() const { return frames_.offset(); }
    std::uint64_t chunks() const { return frames_.frames(); }

private:
    DumpReader(std::string path, MappedFile file);
    const fbs::Chunk* verified();
    const fbs::Chunk* unpacked(const fbs::Packed& packed);

    std::string path_;
    MappedFile file_;
    FrameReader frames_;
    std::vector<std::uint8_t> unpacked_;  ///< the chunk read last, where it was compressed
    const fbs::FileHeader* header_ = nullptr;
    bool unpacks_ = true;
    bool footer_ = false;
    bool after_footer_ = false;
};

}  // namespace ringside::viewer_export::load
