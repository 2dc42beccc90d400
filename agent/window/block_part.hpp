// The part of a block that a range keeps. Pure.
#pragma once

#include "agent/drain/accounts.hpp"
#include "agent/drain/sink.hpp"

namespace ringside::agent {

/// Leaves in `block` what a capture of that range keeps: its records decoded, those outside left out as a gap, the context followed to the
/// first that stays, open ranges that began outside taken off.
/// @param outside  grows by the records that were left out
/// @return false where the block's bytes are damaged: it is then unchanged
bool keep_part(Block& block, const TickRange& range, std::uint64_t& outside);
/// The open ranges alone: for a block whose records all lie in the range.
void keep_open_part(Block& block, const TickRange& range);

}  // namespace ringside::agent
