// Memory for what a program tells once and means for ever: domains, registered strings, categories. Taken from one reservation, touched
// as it is used, never freed; no malloc, so hooks may take from it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringside::inject {

/// @return zeroed bytes, aligned to 16; null where the reservation is used up (counted as kTableFull)
/// @thread thread-safe
void* keep(std::size_t bytes);

/// A copy with a NUL behind it, cut at schema::kMaxNameLength.
const char* keep_text(const char* text, std::size_t length);

}  // namespace ringside::inject
