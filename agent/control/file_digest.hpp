// XXH3 of a part and of a file: both sides of a fetch. Public.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "schema/result.hpp"

namespace ringside::agent {

std::uint64_t digest_of(std::span<const std::uint8_t> bytes);

/// Of the first `bytes` of a file, read in pieces of a megabyte.
/// @param go_on  asked before each piece
/// @errors Input: it is shorter, can't be read, or was given up
schema::Result<std::uint64_t> digest_of(int file, std::uint64_t bytes,
                                        const std::function<bool()>& go_on);

}  // namespace ringside::agent
