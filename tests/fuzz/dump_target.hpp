// One file against the loader and the views, as `ringside table` and `ringside export` read and show it. A file is a dump that its writer
// did not end, or one that somebody made to look like a dump: it is read up to its damage, never beyond.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schema/frame.hpp"

namespace ringside::tests::fuzz {

/// What the loader made of a file.
struct Loaded {
    bool refused = false;             ///< not even one chunk
    std::uint64_t damages = 0;        ///< places that it told of
    std::uint64_t damage_at = ~0ull;  ///< the first
    std::uint64_t ranges = 0;
    std::uint64_t resumable = 0;  ///< bytes that an agent would go on behind; 0: it refuses
};

/// Loads `bytes` as a dump, shows them as a table and as a Chrome trace, and reads them as the next agent does that is to go on with them.
Loaded load_dump(const std::vector<std::uint8_t>& bytes);

/// Loads `bytes` as a job index beside the sample dump, and shows both.
/// @param corrected  by the clocks that the index tells
void load_index(const std::vector<std::uint8_t>& bytes, bool corrected);

/// Makes every frame whole that could be: magic, length and checksum are those of what follows. So a fuzzer gets past them.
void mend_frames(std::vector<std::uint8_t>& bytes, std::uint32_t magic = schema::kDumpFrameMagic);

/// A dump with every kind of chunk and record. @param edges  where its chunks begin, and its end
std::vector<std::uint8_t> sample_dump(std::vector<std::size_t>& edges);
/// The index of its calls, as the offline join makes it.
std::vector<std::uint8_t> sample_index();

}  // namespace ringside::tests::fuzz
