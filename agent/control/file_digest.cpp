#include "agent/control/file_digest.hpp"

#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "agent/attach/file_handle.hpp"

namespace ringside::agent {

using schema::Error;
using schema::ErrorCode;

std::uint64_t digest_of(std::span<const std::uint8_t> bytes) {
    return XXH3_64bits(bytes.data(), bytes.size());
}

schema::Result<std::uint64_t> digest_of(int file, std::uint64_t bytes,
                                        const std::function<bool()>& go_on) {
    constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
    const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                         &XXH3_freeState);
    XXH3_64bits_reset(state.get());
    std::vector<std::uint8_t> piece(std::min(kPiece, bytes));
    for (std::uint64_t at = 0; at < bytes;) {
        if (!go_on()) return Error{ErrorCode::kInput, "given up"};
        const ssize_t got =
            ::pread(file, piece.data(), std::min(kPiece, bytes - at), static_cast<off_t>(at));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            return Error{ErrorCode::kInput,
                         got == 0 ? std::string("it has become shorter") : error_text(errno)};
        XXH3_64bits_update(state.get(), piece.data(), static_cast<std::size_t>(got));
        at += static_cast<std::uint64_t>(got);
    }
    return XXH3_64bits_digest(state.get());
}

}  // namespace ringside::agent
