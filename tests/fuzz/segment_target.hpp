// One input against the agent's attach and drain: the orders of its script in turn, with what has to hold checked after each of the
// agent's. The code under test is the shipped one; only guarded accesses pass by here first (link option --wrap), so that a hostile
// process can act between any two looks of the agent, the same way each time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringside::tests::fuzz {

/// Runs one input. Aborts where a check does not hold.
void run_segment_script(const std::uint8_t* bytes, std::size_t size);

}  // namespace ringside::tests::fuzz
