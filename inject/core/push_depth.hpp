// Keys for ranges that a program pushes and pops: what is popped is the innermost one of its domain on this thread, and no handle names
// it. So its key is (domain, depth), and the depth is counted here, for pushes too that found the open stack full: their pops then find
// nothing and end nobody else's range.
#pragma once

#include <cstdint>

#include "inject/core/emit.hpp"

namespace ringside::inject {

/// @param domain  any number that tells one domain of one source from the others
/// @return for ThreadLane::begin_range()
/// @thread inside a HookScope
std::uint64_t push_key(SourceId source, std::uint64_t domain);

/// @return for ThreadLane::end_range(); 0: what is popped was pushed before the capture
std::uint64_t pop_key(SourceId source, std::uint64_t domain);

}  // namespace ringside::inject
