// Compresses chunks, one after the other, with zstd's quickest level: what is in them is packed already, and the drain thread waits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

struct ZSTD_CCtx_s;

namespace ringside::agent {

/// @thread one
class Packer {
public:
    Packer();

    /// @return the compressed bytes, until the next call; empty where that would save nothing, or there is no memory for it
    std::span<const std::uint8_t> pack(std::span<const std::uint8_t> bytes);

private:
    struct Free {
        void operator()(ZSTD_CCtx_s* context) const;
    };
    std::unique_ptr<ZSTD_CCtx_s, Free> context_;
    std::vector<std::uint8_t> packed_;
};

}  // namespace ringside::agent
