// When a capture by iterations is over, and what is said of it: the leader's decisions, from what its nodes answer. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/control/messages.hpp"
#include "agent/correlate/halves.hpp"

namespace ringside::agent {

/// Of a node that takes no part any more: nobody there is waited for.
void end_all(fbs::IterationsReplyT& node);

/// Adds a node's answer to those of others.
void add_progress(fbs::IterationsReplyT& sum, const fbs::IterationsReplyT& node);

/// Whether nobody is waited for any more: who has shown a boundary is until it is done or has ended; who has shown none is for twice as long as the
/// slowest of the others took, and a second longer than that one at least. Where nobody has shown any, never: the timeout ends it.
/// @param since_start_ns  from the agreed instant until now
bool iterations_over(const fbs::IterationsReplyT& all, std::int64_t since_start_ns);

/// "iterations 3 of 5 in 6 processes".
std::string iterations_text(const fbs::IterationsReplyT& all, std::uint32_t asked);

/// Has each process that misses iterations say so as its reason.
/// @param sought  the name that was asked for; empty: none
/// @param until   what ended the capture
void say_missing_iterations(std::vector<NodeCapture>& captures, const std::string& sought,
                            const std::string& until);

}  // namespace ringside::agent
