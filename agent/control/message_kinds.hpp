// What is said of each kind of message in one place, so that a new kind can't be forgotten: who says it, and how much there may be in its lists and texts.
// Called by `messages` alone.
#pragma once

#include "schema/control_generated.h"

namespace ringside::agent {

enum class MessageRole {
    kRequest,      ///< to an agent
    kNodesAnswer,  ///< of an agent or a relay, to a leader; to commands, too
    kAnswer        ///< of an agent, to commands alone
};

/// @param kind  one that this version knows
MessageRole role_of(fbs::Content kind);

/// Of a verified message, which tells each thing once.
/// @return false: a list or a text in it is longer than any honest one, or numbers in it do not lie where compilers count on them
bool in_limits(const fbs::Message& message);

}  // namespace ringside::agent
