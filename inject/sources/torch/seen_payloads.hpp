// Requests that were seen before: a service calls the same few functions with arguments of the same shapes, whose payloads are then the same
// to the last byte. To compare is a tenth of the walk through the pickle and of the look-up of its names.
// Called by rpc_calls (both ends) for pickles that would be walked as a whole.
// @thread thread-safe, async-signal-safe; nobody waits
#pragma once

#include <cstddef>
#include <cstdint>

#include "schema/ids.hpp"

namespace ringside::inject::torch {

/// Interned names of a called function; kNoName where there is none.
struct CalledNames {
    schema::NameId function;
    schema::NameId module;
};

/// @return whether this payload was kept; `out` is what it was kept with
/// @param epoch  of the names: what was kept under another is forgotten
bool find_seen(const char* payload, std::size_t size, std::uint32_t epoch, CalledNames* out);

/// Keeps `names` for the payload, where it is short enough and its place is free or has not been of use for a while.
void keep_seen(const char* payload, std::size_t size, std::uint32_t epoch,
               const CalledNames& names);

}  // namespace ringside::inject::torch
