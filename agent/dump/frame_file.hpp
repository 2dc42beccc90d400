// A file of checksummed frames (schema/README.md, "A file") that grows by whole frames: one that can't be written whole is taken back.
#pragma once

#include <cstdint>
#include <span>

#include "agent/attach/file_handle.hpp"

namespace ringside::agent {

class FrameFile {
public:
    FrameFile() = default;
    /// @param file   open for writing, at its end
    /// @param bytes  that it holds, in whole frames
    FrameFile(FileHandle file, std::uint32_t magic, std::uint64_t bytes = 0)
        : file_(std::move(file)), magic_(magic), bytes_(bytes) {}

    /// Appends one frame around `body`.
    /// @return 0, or the errno of the write; the file then ends with the frame before, and the next call goes on there
    int append(std::span<const std::uint8_t> body);
    /// @return 0, or the errno of the fsync
    int sync();
    std::uint64_t bytes() const { return bytes_; }
    static std::uint64_t frame_bytes(std::size_t body_bytes);

private:
    bool take_back() const;

    FileHandle file_;
    std::uint32_t magic_ = 0;
    std::uint64_t bytes_ = 0;
    bool torn_ = false;  ///< a part of a frame stands behind them, which could not be cut off
};

}  // namespace ringside::agent
