#include "agent/dump/packer.hpp"

#include <zstd.h>

namespace ringside::agent {
namespace {

constexpr int kLevel = 1;
constexpr std::size_t kLeastBytes = 256;  ///< below it the chunk's own frame is most of it

}  // namespace

Packer::Packer() : context_(ZSTD_createCCtx()) {}

void Packer::Free::operator()(ZSTD_CCtx_s* context) const {
    ZSTD_freeCCtx(context);
}

std::span<const std::uint8_t> Packer::pack(std::span<const std::uint8_t> bytes) {
    if (context_ == nullptr || bytes.size() < kLeastBytes) return {};
    packed_.resize(ZSTD_compressBound(bytes.size()));
    const std::size_t size = ZSTD_compressCCtx(context_.get(), packed_.data(), packed_.size(),
                                               bytes.data(), bytes.size(), kLevel);
    if (ZSTD_isError(size) != 0 || size + kLeastBytes > bytes.size()) return {};
    return {packed_.data(), size};
}

}  // namespace ringside::agent
