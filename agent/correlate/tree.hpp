// Parents and trace ids of joined calls. Used by join.cpp alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "agent/correlate/join.hpp"

namespace ringside::agent {

/// Sets `parent` of each call: the one whose server's half has the key that the client's half names, in the same process. A chain that
/// bites its own tail (no honest process writes one) is opened where it closes.
void link_parents(std::span<const NodeCapture> nodes, std::vector<Call>& calls);

/// Gives each call its root's trace id: the wire's where the root carries one, else one made of the root's half and the capture's id.
void give_trace_ids(std::span<const NodeCapture> nodes, std::uint64_t capture_id,
                    std::vector<Call>& calls);

}  // namespace ringside::agent
