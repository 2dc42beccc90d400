// What programs hold of us: domains and strings in ITT's own layout, counters, events. One text is one object; kept for good.
#pragma once

#include <atomic>
#include <cstdint>

#include "inject/sources/itt/abi.hpp"

namespace ringside::inject::itt {

struct Counter {
    const char* name;
    const char* domain;
    std::int32_t type;  ///< NumberType
    std::atomic<std::int64_t> sum;
};

/// Takes over what the program has made of a copy of ITT before it called us: asked for again, it gets the same.
/// @thread thread-safe; the copy's own lock is held
void adopt(const Global& global);

/// @return null where memory is used up, which ITT's callers take for "switched off"
/// @thread thread-safe
Domain* make_domain(const char* name);
StringHandle* make_string(const char* text);
Counter* make_counter(const char* name, const char* domain, std::int32_t type);

/// @return a number from 1; 0 where there are too many
int make_event(const char* name, std::size_t length);
/// @return null: no such event
const char* event_name(int event);

/// Ranges that may end on another thread are named by the program: their key, between begin and end. What has no end before its capture's gives its
/// place to the next capture's: ends between two captures are not seen.
/// @param key   never 0, and no other pair's   @param word  the capture's
/// @return false: too many are under way (the caller counts it)
/// @thread thread-safe
bool remember_pair(std::uint64_t identity, std::uint64_t key, std::uint32_t word);
/// @return 0: it began before the capture
/// @thread thread-safe
std::uint64_t take_pair(std::uint64_t identity, std::uint32_t word);

}  // namespace ringside::inject::itt
