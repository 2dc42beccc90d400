// Names that a program gives its threads through a framework, in place of the kernel's 15 bytes. They are told while nothing is
// captured, as a rule: kept until the thread gets a lane.
#pragma once

#include <cstdint>

namespace ringside::inject {

/// Cut at schema::kThreadNameBytes - 1.
/// @param tid  the kernel's; 0: the calling thread's
/// @thread thread-safe
void name_thread(std::uint32_t tid, const char* text);

/// @param out  schema::kThreadNameBytes, NUL-padded
/// @return false: `tid` (the calling thread) has none
bool given_thread_name(std::uint32_t tid, char* out);

}  // namespace ringside::inject
