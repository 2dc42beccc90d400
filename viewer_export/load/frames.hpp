// The frames of a dump or an index, one after the other, up to the first that is not whole (schema/README.md, "a file").
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace ringside::viewer_export::load {

class FrameReader {
public:
    /// @param bytes  the whole file, borrowed; 8-byte aligned
    /// @param magic  kDumpFrameMagic or kJobFrameMagic
    FrameReader(std::span<const std::uint8_t> bytes, std::uint32_t magic)
        : bytes_(bytes), magic_(magic) {}

    /// @param payload  the next frame's FlatBuffer
    /// @return false at the end of the file, or where the next frame is not whole: problem() tells
    bool next(std::span<const std::uint8_t>& payload);

    /// Goes on at a frame that has been read.
    void seek(std::uint64_t offset) {
        offset_ = offset;
        problem_.clear();
    }

    /// Bytes of the whole frames read so far.
    std::uint64_t offset() const { return offset_; }
    std::uint64_t frames() const { return frames_; }
    std::uint64_t size() const { return bytes_.size(); }
    /// Why the frame at offset() is not whole; empty at the file's proper end.
    const std::string& problem() const { return problem_; }
    /// The last frame was whole but its content is not usable: it doesn't count.
    void reject(std::string why);

private:
    bool fail(std::string why);

    std::span<const std::uint8_t> bytes_;
    std::uint32_t magic_;
    std::uint64_t offset_ = 0;
    std::uint64_t previous_ = 0;
    std::uint64_t frames_ = 0;
    std::string problem_;
};

}  // namespace ringside::viewer_export::load
