// A window's pieces as files in the job directory: their names, and reading them. A piece has a dump's frames (schema/README.md, "A file"):
// header, processes, names, blocks, and is readable by itself. Used while a trace is cut out of the window, and by whoever finds pieces that
// an agent which died has left.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/attach/file_handle.hpp"
#include "schema/dump_generated.h"

namespace ringside::agent {

/// `window.<sequence>`, decimal; sequences count from 1 and grow for as long as the directory lives.
std::string piece_name(std::uint64_t sequence);
std::optional<std::uint64_t> parse_piece_name(const std::string& name);

struct FoundPiece {
    std::uint64_t sequence = 0;
    std::uint64_t bytes = 0;
};

/// The pieces that lie in a directory, oldest first: this user's ordinary files alone.
std::vector<FoundPiece> find_pieces(int directory);
/// Removes them all. @return how many there were
std::size_t remove_pieces(int directory);

/// Opens a piece for reading; an invalid handle and errno where it is gone or is no file of ours.
FileHandle open_piece(int directory, std::uint64_t sequence);

/// Reads the frame at `offset` of a piece into `buffer`, checks its checksum and verifies the chunk in it.
/// @param frame_bytes  set to the frame's length where there is one
/// @return null where no whole, undamaged frame stands there; else a chunk that lives in `buffer`
const fbs::Chunk* read_frame(int file, std::uint64_t offset, std::vector<std::uint8_t>& buffer,
                             std::uint64_t& frame_bytes);

/// Hands over every chunk of every piece in a directory, oldest first, each piece up to its last whole frame. What an agent that was
/// killed had in its window is all of this: names stand before the blocks that use them in each piece, a lane's positions grow from piece
/// to piece, and where they jump something has aged out or was lost.
/// @param take  false ends it
void read_pieces(int directory,
                 const std::function<bool(std::uint64_t sequence, const fbs::Chunk& chunk)>& take);

}  // namespace ringside::agent
