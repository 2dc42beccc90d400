// The window that an agent which died has left: its pieces made into one dump without an end, as a capture's agent that died would have left
// it. Who goes on with that (DumpWriter::resume) has both the window and what the processes have written since.
#pragma once

#include <cstdint>

#include "agent/dump/dump_writer.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

/// Copies all pieces of a directory, each up to its last whole frame, into a dump that has just been made. Processes are numbered anew. From the
/// begin of its first piece on: what began before has aged out, and counts as outside; losses before its lane's first block there are not
/// counted, unless all of that turn's were in the window.
/// @param capture_id  the dump's
/// @return its header as it was written
/// @errors Input: no piece is whole enough to tell whose it is; Usage: the dump can't be written
schema::Result<DumpHeader> copy_left_window(int directory, std::uint64_t capture_id,
                                            DumpWriter& writer);

}  // namespace ringside::agent
