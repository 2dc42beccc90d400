// Looks at a message's bytes before anything else does: who it is, and what taking it apart would copy. FlatBuffers' verifier bounds neither: one text, list or
// table may be told a hundred thousand times in a small message, which verifies, and comes to gigabytes when it is taken apart. Called by `messages` alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "schema/control_generated.h"

namespace ringside::agent {

struct MessageHead {
    std::uint32_t version = 0;
    std::uint64_t id = 0;
    fbs::Content kind = fbs::Content::NONE;  ///< may be of a later version
};

/// What stands before the content, which is not looked at.
/// @return nothing: that is no control message
/// @thread thread-safe
std::optional<MessageHead> head_of(std::span<const std::uint8_t> bytes);

inline constexpr int kMostDepth = 16;  ///< of tables in tables, the verifier's bound too

/// Goes through all that the schema knows of a message, of any kind, and counts each text, list and table as often as it is reached: as often as it would be copied,
/// and verified. Who writes a message writes each thing by itself, so that all of it comes to no more than the message has bytes.
/// @param most  bytes; the walk ends where it has come to more
/// @return false: it is more, or leads out of the message; true does not replace the verifier
/// @thread thread-safe
bool tells_at_most(std::span<const std::uint8_t> bytes, std::size_t most);

}  // namespace ringside::agent
