// Dumps of a size that takes time: four lanes of nested ranges, a step and its children, as torch writes them.
#pragma once

#include <cstdint>
#include <filesystem>

namespace ringside::tests {

/// @param ranges     so many, to the next lower multiple of 16
/// @param operators  a quarter of them have sequence numbers
void make_big_dump(std::uint64_t ranges, bool operators, const std::filesystem::path& path);

}  // namespace ringside::tests
